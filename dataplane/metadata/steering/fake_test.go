package steering

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errCut = errors.New("the process has ended")

// world is what outlives a process: the maps, the programs and the file. It breaks off
// after a number of steps, and looks at what is promised after each one.
type world struct {
	t       *testing.T
	ns      string
	file    string
	now     time.Time
	numbers map[uint32]taps.Source
	forward map[taps.Source]taps.Source // by place
	on      map[uint32]bool
	// steps left; below 0: without end.
	steps, took int
	// meant is whom a number stood for, and until when nobody else may have it.
	meant map[uint32]string
}

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, ns: fmt.Sprintf("slst%d", os.Getpid()), file: filepath.Join(t.TempDir(), "identities.json"), now: time.Unix(1_700_000_000, 0),
		numbers: map[uint32]taps.Source{}, forward: map[taps.Source]taps.Source{}, on: map[uint32]bool{}, steps: -1, meant: map[uint32]string{},
	}
	host(t, "ip netns add "+w.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", w.ns).Run() })
	return w
}

func host(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}

// tap makes a device and is its intent.
func (w *world) tap(name string, index uint32) intent.Tap {
	w.t.Helper()
	host(w.t, fmt.Sprintf("ip -n %s link add %s index %d type veth peer name %s-m index %d", w.ns, name, index, name, index+500))
	return intent.Tap{Name: name, IfIndex: index}
}

func (w *world) untap(name string) { w.t.Helper(); host(w.t, "ip -n "+w.ns+" link del "+name) }

// start is a process, which takes a while to begin.
func (w *world) start() *Driver {
	w.now = w.now.Add(time.Second)
	d := New(Config{Maps: w, File: w.file, Node: netns.Named(w.ns), Now: func() time.Time { return w.now }})
	d.write = func(path string, table *identity.Table) error {
		if err := w.step(); err != nil {
			return err
		}
		for n := range w.numbers {
			if !slices.Contains(numbersOf(table), n) {
				w.t.Errorf("the number %d goes out of the file before the maps", n)
			}
		}
		return identity.Write(path, table)
	}
	return d
}

func numbersOf(t *identity.Table) (out []uint32) {
	for _, p := range t.Ports() {
		for n := range p.Numbers4 {
			out = append(out, uint32(n))
		}
		for n := range p.Numbers6 {
			out = append(out, uint32(n))
		}
	}
	return out
}

func (w *world) step() error {
	if w.steps == 0 {
		return errCut
	}
	w.steps--
	w.took++
	return nil
}

func (w *world) Sources() (out []taps.Source, err error) {
	for _, s := range w.numbers {
		if f, ok := w.forward[place(s)]; !ok || f != s {
			s.Answer = intent.MAC{}
		}
		out = append(out, s)
	}
	for _, f := range w.forward {
		if s, ok := w.numbers[f.Number]; !ok || place(s) != place(f) {
			out = append(out, bare(f))
		}
	}
	return out, nil
}

// Put is two steps: the way back, and the way there.
func (w *world) Put(s taps.Source) error {
	if s.IfIndex == 0 || s.Number == 0 || s.Answer.IsZero() || s.MAC.IsZero() {
		w.t.Errorf("put %+v", s)
	}
	if was, ok := w.numbers[s.Number]; ok && bare(was) != bare(s) {
		w.t.Errorf("the number of %+v is given to %+v", was, s)
	}
	table, err := identity.Read(w.file)
	if err != nil {
		w.t.Fatalf("in the maps before there is a file: %v", err)
	}
	w.means(table, s)
	if err := w.step(); err != nil {
		return err
	}
	w.numbers[s.Number] = s
	if err := w.step(); err != nil {
		return err
	}
	w.forward[place(s)] = s
	return nil
}

// means looks at what the proxy would say of a source.
func (w *world) means(table *identity.Table, s taps.Source) {
	a := identity.Address4(identity.Number(s.Number))
	if !s.Addr.IsValid() {
		a = identity.Address6(identity.Number(s.Number), netip.MustParseAddr("fe80::1"))
	}
	p, guest, ok := table.Find(a)
	if !ok || s.Addr.IsValid() && guest != s.Addr {
		w.t.Errorf("the file says nothing of %+v: %+v", s, p)
	}
	meant := p.Name + " " + p.Instance
	if was := w.meant[s.Number]; was != "" && was != meant && !strings.HasSuffix(was, " ") {
		w.t.Errorf("the number %d was that of %s, and is that of %s", s.Number, was, meant)
	}
	w.meant[s.Number] = meant
}

func (w *world) Remove(s taps.Source) error {
	if err := w.step(); err != nil {
		return err
	}
	if f, ok := w.forward[place(s)]; ok && f.Number == s.Number {
		delete(w.forward, place(s))
	}
	if err := w.step(); err != nil {
		return err
	}
	if was, ok := w.numbers[s.Number]; ok && place(was) == place(s) {
		delete(w.numbers, s.Number)
	}
	return nil
}

func (w *world) Attach(ifindex uint32) error {
	if err := w.step(); err != nil {
		return err
	}
	w.on[ifindex] = true
	return nil
}

func (w *world) Detach(ifindex uint32) error {
	if err := w.step(); err != nil {
		return err
	}
	delete(w.on, ifindex)
	for _, s := range w.numbers {
		if s.IfIndex == ifindex {
			w.t.Errorf("the program goes before %+v", s)
		}
	}
	return nil
}

func (w *world) Attached() (out []uint32, err error) {
	err = netns.Named(w.ns).Netlink(func(h *netlink.Handle) error {
		for ifindex := range w.on {
			// The kernel takes the program off a device that goes.
			if _, err := h.LinkByIndex(int(ifindex)); err == nil {
				out = append(out, ifindex)
			}
		}
		return nil
	})
	return out, err
}

type table map[string]intent.MetadataPort

// pass is what the engine does: a difference, additions, removals.
func (w *world) pass(d *Driver, want table) (same bool, err error) {
	w.t.Helper()
	is, err := d.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	var rows []reconcile.Row[string, intent.MetadataPort]
	var gone []string
	for k, v := range want {
		if got, ok := is[k]; !ok || got != v {
			rows = append(rows, reconcile.Row[string, intent.MetadataPort]{Key: k, Value: v})
		}
	}
	for k := range is {
		if _, ok := want[k]; !ok {
			gone = append(gone, k)
		}
	}
	slices.Sort(gone)
	slices.SortFunc(rows, func(a, b reconcile.Row[string, intent.MetadataPort]) int { return strings.Compare(a.Key, b.Key) })
	if len(rows)+len(gone) == 0 {
		return true, nil
	}
	if len(rows) > 0 {
		err = errors.Join(d.Apply(w.t.Context(), rows)...)
	}
	if err == nil && len(gone) > 0 {
		err = errors.Join(d.Delete(w.t.Context(), gone)...)
	}
	return false, err
}

// converge takes passes until nothing differs, two at most, and looks at the end.
func (w *world) converge(d *Driver, want table) {
	w.t.Helper()
	for range 3 {
		same, err := w.pass(d, want)
		if err != nil {
			w.t.Fatal(err)
		}
		if same {
			w.settled(want)
			return
		}
	}
	is, _ := d.List(w.t.Context())
	w.t.Fatalf("it does not come to an end: %+v, want %+v", is, want)
}

// settled looks at the maps themselves.
func (w *world) settled(want table) {
	w.t.Helper()
	table, err := identity.Read(w.file)
	if err != nil && len(want) > 0 {
		w.t.Fatal(err)
	}
	guests, devices := 0, map[uint32]bool{}
	for _, v := range want {
		guests += len(guestsOf(v))
		if v.Tap.IfIndex != 0 {
			devices[v.Tap.IfIndex] = true
		}
		for _, g := range guestsOf(v) {
			f, ok := w.forward[place(taps.Source{IfIndex: v.Tap.IfIndex, VLAN: v.Tap.VLAN, MAC: g.mac, Addr: g.addr})]
			back := w.numbers[f.Number]
			if !ok || back != f || f.Answer != v.Answer || f.MAC != g.mac {
				w.t.Errorf("%s: guest %v: there %+v, back %+v", v.Port, g, f, back)
				continue
			}
			w.means(table, f)
			if got := w.meant[f.Number]; got != v.Port+" "+v.Instance {
				w.t.Errorf("guest %v of %s is %s", g, v.Port, got)
			}
		}
	}
	if len(w.numbers) != guests || len(w.forward) != guests || len(numbersOf(table)) != guests {
		w.t.Errorf("%d guests, %d ways back, %d there, %d in the file", guests, len(w.numbers), len(w.forward), len(numbersOf(table)))
	}
	attached, _ := w.Attached()
	for _, ifindex := range attached {
		if !devices[ifindex] {
			w.t.Errorf("device %d has the program", ifindex)
		}
	}
	if len(attached) != len(devices) {
		w.t.Errorf("programs on %v, want %v", attached, devices)
	}
}
