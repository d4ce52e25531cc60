package bpf_test

import (
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// byNumber is the order of Sources.
func byNumber(list ...taps.Source) []taps.Source {
	slices.SortFunc(list, func(a, b taps.Source) int { return int(a.Number) - int(b.Number) })
	return list
}

func wantSources(t *testing.T, r interface{ Sources() ([]taps.Source, error) }, want ...taps.Source) {
	t.Helper()
	got, err := r.Sources()
	if err != nil || !slices.Equal(got, byNumber(want...)) {
		t.Errorf("sources %+v, %v, want %+v", got, err, want)
	}
}

// incomplete is how a source of which a row is missing is listed.
func incomplete(s taps.Source) taps.Source {
	s.Answer = intent.MAC{}
	return s
}

// What was put is listed, by this process, by another one, and after a restart.
func TestTapsSources(t *testing.T) {
	w := newMetadataWorld(t)
	all := []taps.Source{here4, here6, tagged4, tagged6, there4, other4}
	wantSources(t, w.taps, all...)
	in, err := taps.Inspect(w.dir, pinned.HookAuto)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	wantSources(t, in, all...)
	if p, err := in.Proxy(); err != nil || p != (taps.Proxy{Host: mdIndex, HostMAC: hostMD, Inside: insideMD}) {
		t.Errorf("proxy %+v, %v", p, err)
	}
	if age, ok, err := in.HeartbeatAge(); !ok || err != nil || age < 0 || age > time.Minute {
		t.Errorf("the heartbeat is %s old, %t, %v", age, ok, err)
	}
	if _, err := taps.Load(taps.Config{Dir: w.dir, StaleAfter: time.Minute, Log: slog.New(slog.DiscardHandler)}); !errors.Is(err, pinned.ErrInUse) {
		t.Errorf("loaded twice: %v", err)
	}
	if err := w.taps.Close(); err != nil {
		t.Fatal(err)
	}
	d := loadTaps(t, w.dir, pinned.HookAuto)
	wantSources(t, d, all...)
	// Putting it again is no change; another answer is one for all of the tap.
	changed := here4
	changed.Answer = gwMAC
	if err := errors.Join(d.Put(here4), d.Put(changed)); err != nil {
		t.Fatal(err)
	}
	wantSources(t, d, changed, incomplete(here6), tagged4, tagged6, there4, incomplete(other4))
	for _, s := range []taps.Source{here4, here6, other4} {
		if err := d.Put(s); err != nil {
			t.Fatal(err)
		}
	}
	wantSources(t, d, all...)
	for i, s := range all {
		if err := errors.Join(d.Remove(s), d.Remove(s)); err != nil {
			t.Fatal(err)
		}
		wantSources(t, d, all[i+1:]...)
	}
	for _, name := range []string{"taps_v1", "guests4_v1", "guests6_v1", "numbers_v1"} {
		if left := rowsOf(t, raw(t, w.dir, name)); len(left) > 0 {
			t.Errorf("%s still has %v", name, slices.Collect(maps.Keys(left)))
		}
	}
}

// What is no source is refused, and changes nothing.
func TestTapsRefuse(t *testing.T) {
	w := newMetadataWorld(t)
	before := byNumber(here4, here6, tagged4, tagged6, there4, other4)
	for name, change := range map[string]func(*taps.Source){
		"no device":        func(s *taps.Source) { s.IfIndex = 0 },
		"no VLAN":          func(s *taps.Source) { s.VLAN = 4095 },
		"no MAC":           func(s *taps.Source) { s.MAC = intent.MAC{} },
		"a group":          func(s *taps.Source) { s.MAC = mac("01:00:5e:00:00:01") },
		"no answer":        func(s *taps.Source) { s.Answer = intent.MAC{} },
		"IPv6":             func(s *taps.Source) { s.Addr = addr("fe80::1") },
		"unspecified":      func(s *taps.Source) { s.Addr = addr("0.0.0.0") },
		"no number":        func(s *taps.Source) { s.Number = 0 },
		"no such number":   func(s *taps.Source) { s.Number = uint32(identity.Max) + 1 },
		"another's":        func(s *taps.Source) { s.Number = there4.Number },
		"another family's": func(s *taps.Source) { s.Number = here6.Number },
		"another MAC's":    func(s *taps.Source) { s.Number, s.MAC = here4.Number, strangerM },
	} {
		s := taps.Source{IfIndex: lo, MAC: vmGuest, Addr: addr(guest4), Number: 1000, Answer: answerM}
		change(&s)
		if err := w.taps.Put(s); err == nil {
			t.Errorf("%s: %+v was put", name, s)
		}
	}
	wantSources(t, w.taps, before...)
}

// A kill between two writes leaves a source that is listed without its answer. It can be
// put, or removed as it is listed.
func TestTapsAfterCrash(t *testing.T) {
	// What is not there of a source: of Put in the order of its writes, of Remove in the opposite one.
	type missing struct {
		name string
		maps []string
	}
	for _, s := range []taps.Source{there4, {IfIndex: 9, MAC: vmGuest, Number: 77, Answer: answerM}} {
		forward := "guests4_v1"
		if !s.Addr.IsValid() {
			forward = "guests6_v1"
		}
		for _, c := range []missing{{"the way there", []string{forward}}, {"and the answer", []string{forward, "taps_v1"}}, {"the way back", []string{"numbers_v1"}}, {"way back and answer", []string{"numbers_v1", "taps_v1"}}} {
			for _, repair := range []bool{true, false} {
				dir := bpffs(t)
				d := loadTaps(t, dir, pinned.HookAuto)
				if err := d.Put(s); err != nil {
					t.Fatal(err)
				}
				d.Close()
				for _, name := range c.maps {
					m := raw(t, dir, name)
					for k := range rowsOf(t, m) {
						if err := m.Delete([]byte(k)); err != nil {
							t.Fatal(err)
						}
					}
				}
				d = loadTaps(t, dir, pinned.HookAuto)
				wantSources(t, d, incomplete(s))
				if repair {
					if err := d.Put(s); err != nil {
						t.Fatal(err)
					}
					wantSources(t, d, s)
					continue
				}
				if err := d.Remove(incomplete(s)); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"taps_v1", forward, "numbers_v1"} {
					if left := rowsOf(t, raw(t, dir, name)); len(left) > 0 {
						t.Errorf("without %s: %s still has %v", c.name, name, left)
					}
				}
			}
		}
	}
}

// A guest that gets another number has it at once; the one before is listed without
// answer, and its removal leaves the new one alone.
func TestTapsOfAnotherNumber(t *testing.T) {
	w := newMetadataWorld(t)
	again, again6 := here4, here6
	again.Number, again6.Number = 1000, 1001
	if err := errors.Join(w.taps.Put(again), w.taps.Put(again6)); err != nil {
		t.Fatal(err)
	}
	rest := []taps.Source{tagged4, tagged6, there4, other4}
	wantSources(t, w.taps, append(rest, again, again6, incomplete(here4), incomplete(here6))...)
	if err := errors.Join(w.taps.Remove(here4), w.taps.Remove(incomplete(here6))); err != nil {
		t.Fatal(err)
	}
	wantSources(t, w.taps, append(rest, again, again6)...)
	w.run(w.tap, []steeredRow{{name: "another number", in: tcp4(vmGuest, gwMAC, guest4, metadata4, segment(1, 80, syn), ""),
		want: tcp4(hostMD, insideMD, numbered4(1000), metadata4, segment(1, 80, syn), ""), outcome: "steered4"}})
	// A row that leads to the number of another one is listed beside it.
	lost := raw(t, w.dir, "guests4_v1")
	for k, v := range rowsOf(t, lost) {
		if v[0] == byte(other4.Number&0xff) && v[1] == byte(other4.Number>>8) {
			v[0], v[1] = byte(tagged4.Number), 0
			putRaw(t, lost, []byte(k), v)
		}
	}
	stray := incomplete(other4)
	stray.Number = tagged4.Number
	got, err := w.taps.Sources()
	if err != nil || !slices.Contains(got, stray) || !slices.Contains(got, incomplete(other4)) || !slices.Contains(got, tagged4) {
		t.Errorf("sources %+v, %v", got, err)
	}
	if err := errors.Join(w.taps.Remove(stray), w.taps.Put(other4)); err != nil {
		t.Fatal(err)
	}
	wantSources(t, w.taps, append(rest, again, again6)...)
}

// Directories that are another build's, another owner's, or none.
func TestTapsForeignPins(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	load := func(dir string) error {
		d, err := taps.Load(taps.Config{Dir: dir, StaleAfter: time.Minute, Log: quiet})
		if err == nil {
			d.Close()
		}
		return err
	}
	rename := func(dir, from, to string) {
		t.Helper()
		if err := os.Rename(filepath.Join(dir, from), filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	if err := load(t.TempDir()); !errors.Is(err, pinned.ErrNotBPFFS) {
		t.Errorf("a plain directory: %v", err)
	}
	if _, err := taps.Load(taps.Config{Dir: bpffs(t), Log: quiet}); err == nil {
		t.Error("a heartbeat is never stale")
	}
	dir := bpffs(t)
	if _, err := taps.OpenHeartbeat(dir); !errors.Is(err, taps.ErrNotLoaded) {
		t.Errorf("no heartbeat: %v", err)
	}
	r, err := taps.Inspect(dir, pinned.HookAuto)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := load(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
	rename(dir, "numbers_v1", "numbers_v2")
	if err := load(dir); !errors.Is(err, pinned.ErrNewerLayout) {
		t.Errorf("a newer layout: %v", err)
	}
	if _, err := taps.Inspect(dir, pinned.HookAuto); !errors.Is(err, pinned.ErrNewerLayout) {
		t.Errorf("a newer layout, inspected: %v", err)
	}
	// One that is older gives way to an empty one.
	rename(dir, "numbers_v2", "numbers_v0")
	if err := load(dir); err != nil {
		t.Errorf("an older layout: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "numbers_v0")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the older layout: %v", err)
	}
	rename(dir, "taps_v1", "numbers_v1")
	if err := load(dir); !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("a foreign map: %v", err)
	}
	pins, err := taps.Pins(dir)
	if err != nil || len(pins) == 0 {
		t.Errorf("pins %v, %v", pins, err)
	}
	if err := taps.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}

// A plain restart keeps the programs that run; another age, or another program in the pin's place, replaces them.
func TestTapsRestart(t *testing.T) {
	dir := bpffs(t)
	ids := func() [2]ebpf.ProgramID {
		t.Helper()
		var out [2]ebpf.ProgramID
		for i, name := range []string{"tap_in", "proxy_in"} {
			p, err := pinned.Open(dir, name)
			if err != nil || p == nil {
				t.Fatalf("%s: %v", name, err)
			}
			out[i], _ = p.ID()
			p.Close()
		}
		return out
	}
	start := func(after time.Duration) [2]ebpf.ProgramID {
		t.Helper()
		d, err := taps.Load(taps.Config{Dir: dir, StaleAfter: after, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		return ids()
	}
	first := start(time.Second)
	if again := start(time.Second); again != first {
		t.Errorf("a restart replaced %v by %v", first, again)
	}
	if other := start(2 * time.Second); other[0] == first[0] || other[1] != first[1] {
		t.Errorf("another age made %v of %v", other, first)
	}
}
