package bpf_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// opened is what Open makes of a directory.
func opened(t *testing.T, cfg sluiceebpf.Config) *sluiceebpf.Dataplane {
	t.Helper()
	cfg.Bridges, cfg.Log = bridges{}, slog.New(slog.DiscardHandler)
	d, err := sluiceebpf.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// runningProgram is the one that a device has.
func runningProgram(t *testing.T, hook sluiceebpf.Hook, ifindex int) ebpf.ProgramID {
	t.Helper()
	if hook == sluiceebpf.HookTCX {
		res, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: ebpf.AttachTCXIngress})
		if err != nil || len(res.Programs) != 1 {
			t.Fatalf("%v, %v", res, err)
		}
		return res.Programs[0].ID
	}
	filters, err := pinned.Place{Program: "overlay_in"}.Filters(ifindex)
	if err != nil || len(filters) != 1 {
		t.Fatalf("%v, %v", filters, err)
	}
	return ebpf.ProgramID(filters[0].Id)
}

func used(d *sluiceebpf.Dataplane) bool {
	select {
	case <-d.Used():
		return true
	default:
		return false
	}
}

// Programs with other constants wait: what runs goes on, takes new devices, and has what is
// written; then all is replaced. A process that ends before, or in the midst of it, leaves
// what the next one goes on from.
func TestOpenLeavesWhatRuns(t *testing.T) {
	for _, hook := range []sluiceebpf.Hook{sluiceebpf.HookTCX, sluiceebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			if err := ns.Do(func() error { return openedLater(t, hook, dir, index) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// openedLater runs in the namespace.
func openedLater(t *testing.T, hook sluiceebpf.Hook, dir string, index int) error {
	cfg := sluiceebpf.Config{Dir: dir, Node: node(), Hook: hook, Limits: fewRows}
	d := load(t, cfg)
	if err := d.Attach(sluiceebpf.OverlayIn, index); err != nil {
		return err
	}
	first := programOf(t, dir)
	d.Close()
	peer, err := netlink.LinkByName("sluice0-ovs")
	if err != nil {
		return err
	}
	cfg.Node.UnderlayMTU = 9000
	d = opened(t, cfg)
	if d.Replaced() || !used(d) {
		t.Errorf("replaced %t, used %t", d.Replaced(), used(d))
	}
	if err := errors.Join(d.Attach(sluiceebpf.OverlayIn, index), d.Attach(sluiceebpf.OverlayIn, peer.Attrs().Index)); err != nil {
		return err
	}
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	still := func(when string, want ebpf.ProgramID) {
		t.Helper()
		for _, i := range []int{index, peer.Attrs().Index} {
			if is := runningProgram(t, hook, i); is != want {
				t.Errorf("%s: device %d has program %d, want %d", when, i, is, want)
			}
			if ok, err := d.Attached(sluiceebpf.OverlayIn, i); !ok || err != nil {
				t.Errorf("%s: attached %t, %v", when, ok, err)
			}
		}
	}
	still("opened", first)
	d.Close()
	d = opened(t, cfg)
	still("opened again", first)
	old, err := ebpf.LoadPinnedProgram(filepath.Join(dir, "prog_overlay_in"), nil)
	if err != nil {
		return err
	}
	defer old.Close()
	constants, err := ebpf.LoadPinnedMap(filepath.Join(dir, "const_overlay_in"), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer constants.Close()
	if err := d.Replace(t.Context()); err != nil {
		return err
	}
	second := programOf(t, dir)
	if second == first || !d.Replaced() {
		t.Errorf("program %d, replaced %t", second, d.Replaced())
	}
	still("replaced", second)
	d.Close()
	if hook == sluiceebpf.HookTCX {
		return nil // a link has its program whatever is pinned
	}
	// As one that was killed when the devices had the new program, and the pin the old one.
	if err := errors.Join(repin(old, filepath.Join(dir, "prog_overlay_in")), repin(constants, filepath.Join(dir, "const_overlay_in"))); err != nil {
		return err
	}
	d = opened(t, cfg)
	if d.Replaced() {
		t.Error("the pinned program counts as this start's")
	}
	still("after a crash", second)
	if err := d.Replace(t.Context()); err != nil {
		return err
	}
	still("replaced after it", programOf(t, dir))
	return d.Close()
}

// repin pins what has been pinned elsewhere in the place of what is pinned there.
func repin[T interface {
	Clone() (T, error)
	Pin(string) error
}](object T, path string) error {
	c, err := object.Clone()
	if err != nil {
		return err
	}
	return pinned.Over(c, path)
}

// A node with other addresses takes nothing by programs that have the former ones: they are
// replaced at once. Maps of another size are written when programs use them.
func TestOpenWaitsForWhatMatters(t *testing.T) {
	dir := bpffs(t)
	cfg := sluiceebpf.Config{Dir: dir, Node: node(), Limits: fewRows}
	load(t, cfg).Close()
	cfg.Node.RouterMAC[5]++
	d := opened(t, cfg)
	if !d.Replaced() || !used(d) {
		t.Errorf("another router MAC: replaced %t, used %t", d.Replaced(), used(d))
	}
	d.Close()
	cfg.Limits.Flows = 4096
	d = opened(t, cfg)
	if d.Replaced() || used(d) {
		t.Errorf("another size: replaced %t, used %t", d.Replaced(), used(d))
	}
	if err := d.Replace(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !d.Replaced() || !used(d) {
		t.Errorf("then: replaced %t, used %t", d.Replaced(), used(d))
	}
	d.Close()
	if d = opened(t, cfg); !d.Replaced() {
		t.Error("the same again is replaced")
	}
}

// A start that ends while programs are loaded is closed at once, and the next one replaces them.
func TestCloseWhileLoading(t *testing.T) {
	dir := bpffs(t)
	cfg := sluiceebpf.Config{Dir: dir, Node: node(), Limits: fewRows}
	load(t, cfg).Close()
	cfg.Node.UnderlayMTU = 9000
	d := opened(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Replace(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("replaced: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	d = opened(t, cfg)
	if d.Replaced() {
		t.Error("a start that ended has replaced programs")
	}
	if err := d.Replace(t.Context()); err != nil || !d.Replaced() {
		t.Errorf("replaced %t, %v", d.Replaced(), err)
	}
}
