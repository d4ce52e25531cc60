package bpf_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
)

// mountedBPFFS is a bpffs of the test's own, with how to mount another one over it and to
// unmount what is on top.
func mountedBPFFS(t *testing.T) (at string, mount, unmount func()) {
	t.Helper()
	at = filepath.Join(t.TempDir(), "bpf")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	mounts := 0
	mount = func() {
		t.Helper()
		if err := unix.Mount("bpf", at, "bpf", 0, ""); err != nil {
			t.Fatal(err)
		}
		mounts++
	}
	unmount = func() {
		t.Helper()
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
		mounts--
	}
	mount()
	t.Cleanup(func() {
		for mounts > 0 {
			unmount()
		}
	})
	return at, mount, unmount
}

func pinsIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The programs on devices, their maps and their links outlast a bpffs that is mounted over the
// one with the pins, and the end of that: the pins are made again where the path leads.
func TestMountsOverPins(t *testing.T) {
	for _, hook := range []sluiceebpf.Hook{sluiceebpf.HookTCX, sluiceebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			at, mount, unmount := mountedBPFFS(t)
			if err := ns.Do(func() error { return overPins(t, hook, filepath.Join(at, "sluice"), index, mount, unmount) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func overPins(t *testing.T, hook sluiceebpf.Hook, dir string, index int, mount, unmount func()) error {
	cfg := sluiceebpf.Config{Dir: dir, Node: node(), Hook: hook}
	d := load(t, cfg)
	tp, err := taps.Load(taps.Config{Dir: dir + "-metadata", Hook: pinned.Hook(hook), StaleAfter: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = tp.Close() })
	if err := d.Attach(sluiceebpf.OverlayIn, index); err != nil {
		return err
	}
	if err := tp.Attach(1); err != nil { // lo, which is no device of the other's
		return err
	}
	running, pins, tapPins := programOf(t, dir), pinsIn(t, dir), pinsIn(t, dir+"-metadata")
	check := func(what string) {
		t.Helper()
		if ok, err := d.Attached(sluiceebpf.OverlayIn, index); !ok || err != nil {
			t.Errorf("%s: attached: %v, %v", what, ok, err)
		}
		if list, err := tp.Attached(); err != nil || !slices.Equal(list, []uint32{1}) {
			t.Errorf("%s: taps %v, %v", what, list, err)
		}
		if err := errors.Join(d.Attach(sluiceebpf.OverlayIn, index), tp.Attach(1)); err != nil {
			t.Errorf("%s: attaching again: %v", what, err)
		}
		if count := attachedPrograms(t, hook, index); count != 1 {
			t.Errorf("%s: %d programs on the device", what, count)
		}
	}
	healed := func(what string) {
		t.Helper()
		check(what + ", before")
		if err := errors.Join(d.KeepPins(), tp.KeepPins()); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		check(what)
		if now := pinsIn(t, dir); !slices.Equal(now, pins) {
			t.Errorf("%s: pins\n%v, were\n%v", what, now, pins)
		}
		if now := pinsIn(t, dir+"-metadata"); !slices.Equal(now, tapPins) {
			t.Errorf("%s: pins\n%v, were\n%v", what, now, tapPins)
		}
		if now := programOf(t, dir); now != running {
			t.Errorf("%s: program %d, was %d", what, now, running)
		}
	}
	healed("nothing mounted")
	mount()
	healed("mounted over")
	unmount()
	healed("unmounted, to the one below")
	unmount()
	check("unmounted")
	for _, err := range []error{d.KeepPins(), tp.KeepPins()} {
		if !errors.Is(err, pinned.ErrNotBPFFS) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), " (type ") {
			t.Errorf("without a bpffs: %v", err)
		}
	}
	if left := pinsIn(t, filepath.Dir(dir)); len(left) > 0 {
		t.Errorf("made on an ordinary file system: %v", left)
	}
	mount()
	healed("unmounted and mounted anew")
	// A start finds all of it.
	d.Close()
	if err := d.KeepPins(); err != nil { // who looks at the pins has not heard of the end
		t.Errorf("after the end: %v", err)
	}
	d = load(t, cfg)
	check("after a restart")
	if now := programOf(t, dir); now != running {
		t.Errorf("a restart replaced the program")
	}
	return errors.Join(d.Detach(sluiceebpf.OverlayIn, index), tp.Detach(1))
}

// Maps that are made anew with other sizes get their names where the pins are by then, at the
// second attempt as at the first.
func TestReplaceAfterMount(t *testing.T) {
	at, mount, unmount := mountedBPFFS(t)
	cfg := sluiceebpf.Config{Dir: filepath.Join(at, "sluice"), Node: node(), Limits: fewRows}
	load(t, cfg).Close()
	cfg.Limits.Flows = 4096
	d := opened(t, cfg)
	if d.Replaced() {
		t.Fatal("nothing is put off")
	}
	mount()
	if err := d.KeepPins(); err != nil {
		t.Fatal(err)
	}
	// What is in the way of one of the last names: the others have theirs already.
	inTheWay := filepath.Join(cfg.Dir, "sessions_v1_new")
	if err := errors.Join(os.Mkdir(inTheWay, 0o700), os.Mkdir(filepath.Join(inTheWay, "x"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if err := d.Replace(t.Context()); err == nil {
		t.Error("a map was published over a directory")
	}
	if err := errors.Join(os.Remove(filepath.Join(inTheWay, "x")), os.Remove(inTheWay)); err != nil {
		t.Fatal(err)
	}
	if err := d.Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	pins := pinsIn(t, cfg.Dir)
	if slices.ContainsFunc(pins, func(pin string) bool { return strings.HasSuffix(pin, pinned.AsideSuffix) }) {
		t.Errorf("left: %v", pins)
	}
	unmount() // to where maps were left by their temporary names
	if err := d.KeepPins(); err != nil {
		t.Fatal(err)
	}
	d.Close()
	if d = opened(t, cfg); !d.Replaced() {
		t.Error("the next start does not find what was replaced")
	}
	if now := pinsIn(t, cfg.Dir); !slices.Equal(now, pins) {
		t.Errorf("pins\n%v, were\n%v", now, pins)
	}
}

// Rows that need another page get one while the pins are on another mount than their path, and
// a start finds it.
func TestPagesAfterMount(t *testing.T) {
	at, mount, _ := mountedBPFFS(t)
	cfg := sluiceebpf.Config{Dir: filepath.Join(at, "sluice"), Node: node(), Limits: fewRows}
	d := load(t, cfg)
	mount()
	fillWithVIPs(t, d)
	if err := d.KeepPins(); err != nil {
		t.Fatal(err)
	}
	pagesArePinned(t, cfg.Dir)
	d.Close()
	d = opened(t, cfg)
	if kept, err := d.VIPs().List(t.Context()); err != nil || len(kept) != len(worldVIPs()) {
		t.Errorf("%d VIPs, %v", len(kept), err)
	}
}

// Pins of maps, programs and pages that somebody removes are made again of what the process
// holds, and a start finds all of it. The pin of a link takes the link along, which is attached again.
func TestRemovedPins(t *testing.T) {
	for _, hook := range []sluiceebpf.Hook{sluiceebpf.HookTCX, sluiceebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			at, _, _ := mountedBPFFS(t)
			if err := ns.Do(func() error { return removedPins(t, hook, filepath.Join(at, "sluice"), index) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

func removedPins(t *testing.T, hook sluiceebpf.Hook, dir string, index int) error {
	cfg := sluiceebpf.Config{Dir: dir, Node: node(), Hook: hook, Limits: fewRows}
	d := load(t, cfg)
	fillWithVIPs(t, d)
	tp, err := taps.Load(taps.Config{Dir: dir + "-metadata", Hook: pinned.Hook(hook), StaleAfter: time.Minute, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	t.Cleanup(func() { _ = tp.Close() })
	// The kernel ends a link some time after its pin has gone, and refuses another one until then.
	attach := func() (err error) {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if err = errors.Join(d.Attach(sluiceebpf.OverlayIn, index), tp.Attach(1)); err == nil {
				return nil
			}
		}
		return err
	}
	if err := attach(); err != nil {
		return err
	}
	keep := func() error { return errors.Join(d.KeepPins(), tp.KeepPins()) }
	running, pins := programOf(t, dir), map[string][]string{dir: pinsIn(t, dir), dir + "-metadata": pinsIn(t, dir+"-metadata")}
	check := func(what string) {
		t.Helper()
		for dir, want := range pins {
			if now := pinsIn(t, dir); !slices.Equal(now, want) {
				t.Errorf("%s: pins\n%v, were\n%v", what, now, want)
			}
		}
		if now := programOf(t, dir); now != running {
			t.Errorf("%s: program %d, was %d", what, now, running)
		}
		pagesArePinned(t, dir)
	}
	for dir, names := range pins {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil {
				return err
			}
			if err := errors.Join(keep(), attach()); err != nil {
				t.Errorf("without %s: %v", path, err)
			}
			check("without " + path)
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := errors.Join(keep(), attach()); err != nil {
		t.Errorf("without the directories: %v", err)
	}
	check("without the directories")
	if count := attachedPrograms(t, hook, index); count != 1 {
		t.Errorf("%d programs on the device", count)
	}
	d.Close()
	if err := d.KeepPins(); err != nil { // who looks at the pins has not heard of the end
		t.Errorf("after the end: %v", err)
	}
	d = load(t, cfg)
	check("after a restart")
	if kept, err := d.VIPs().List(t.Context()); err != nil || len(kept) != len(worldVIPs()) {
		t.Errorf("%d VIPs, %v", len(kept), err)
	}
	// A pin that cannot be made again is told by its path.
	inTheWay := filepath.Join(dir, "sessions_v1_new")
	if err := errors.Join(os.Remove(filepath.Join(dir, "sessions_v1")), os.Mkdir(inTheWay, 0o700), os.Mkdir(filepath.Join(inTheWay, "x"), 0o700)); err != nil {
		return err
	}
	if err := d.KeepPins(); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "sessions_v1")) {
		t.Errorf("a pin that is missing: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(inTheWay, "x")), os.Remove(inTheWay), d.KeepPins()); err != nil {
		t.Error(err)
	}
	check("with nothing in the way")
	return errors.Join(d.Detach(sluiceebpf.OverlayIn, index), tp.Detach(1))
}

func TestWatchMounts(t *testing.T) {
	_, mount, unmount := mountedBPFFS(t)
	ctx, cancel := context.WithCancel(t.Context())
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- kernel.WatchMounts(ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	}()
	for _, change := range []func(){func() {}, mount, unmount} { // it tells once at first
		change()
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("a mount was not told")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
