package bpf_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// namespace makes a network namespace with a veth pair that is down.
func namespace(t *testing.T) (netns.Namespace, int) {
	t.Helper()
	name := fmt.Sprintf("sluice-bpf-%d", os.Getpid())
	if b, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		t.Fatalf("ip netns add: %v: %s", err, b)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", name).Run() })
	ns := netns.Named(name)
	var index int
	err := ns.Do(func() error {
		if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "sluice0"}, PeerName: "sluice0-ovs"}); err != nil {
			return err
		}
		l, err := netlink.LinkByName("sluice0")
		if err == nil {
			index = l.Attrs().Index
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return ns, index
}

// attachedPrograms counts the programs on a device's ingress; those of both
// hooks for HookAuto.
func attachedPrograms(t *testing.T, hook sluiceebpf.Hook, ifindex int) int {
	t.Helper()
	count := 0
	if hook != sluiceebpf.HookClsact {
		res, err := link.QueryPrograms(link.QueryOptions{Target: ifindex, Attach: ebpf.AttachTCXIngress})
		switch {
		case err == nil:
			count = len(res.Programs)
		case hook == sluiceebpf.HookTCX:
			t.Fatal(err)
		}
	}
	if hook == sluiceebpf.HookTCX {
		return count
	}
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		t.Fatal(err)
	}
	filters, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); !ok || b.Name != "sluice_refuse" {
			count++
		}
	}
	return count
}

func TestAttach(t *testing.T) {
	for _, hook := range []sluiceebpf.Hook{sluiceebpf.HookAuto, sluiceebpf.HookTCX, sluiceebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			if err := ns.Do(func() error { return attachTwice(t, hook, dir, index) }); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// attachTwice attaches, restarts, changes a constant and detaches. It runs in
// the namespace.
func attachTwice(t *testing.T, hook sluiceebpf.Hook, dir string, index int) error {
	cfg := sluiceebpf.Config{Dir: dir, Node: node(), Hook: hook}
	d := load(t, cfg)
	if err := errors.Join(d.Attach(sluiceebpf.OverlayIn, index), d.Attach(sluiceebpf.OverlayIn, index)); err != nil {
		return err
	}
	if ok, err := d.Attached(sluiceebpf.OverlayIn, index); !ok || err != nil {
		t.Errorf("attached: %v, %v", ok, err)
	}
	first := programOf(t, dir)
	d.Close()
	// The same build and constants: the program that runs is kept.
	d = load(t, cfg)
	if err := d.Attach(sluiceebpf.OverlayIn, index); err != nil {
		return err
	}
	if now := programOf(t, dir); now != first {
		t.Errorf("a plain restart replaced program %d by %d", first, now)
	}
	n := node()
	n.UnderlayMTU = 9000
	if err := d.SetNode(n); err != nil {
		return err
	}
	if now := programOf(t, dir); now == first {
		t.Error("another constant did not replace the program")
	}
	if count := attachedPrograms(t, hook, index); count != 1 {
		t.Errorf("%d programs on the device, want 1", count)
	}
	inspected := inspect(t, cfg)
	if a, err := inspected.Attachment(sluiceebpf.OverlayIn, "sluice0", index); a != nil || err != nil {
		t.Errorf("an inspection sees %+v, %v", a, err)
	}
	if err := errors.Join(d.Detach(sluiceebpf.OverlayIn, index), d.Detach(sluiceebpf.OverlayIn, index)); err != nil {
		return err
	}
	if count := attachedPrograms(t, hook, index); count != 0 {
		t.Errorf("%d programs on the device after detaching", count)
	}
	if ok, err := d.Attached(sluiceebpf.OverlayIn, index); ok || err != nil {
		t.Errorf("attached after detaching: %v, %v", ok, err)
	}
	if a, err := inspected.Attachment(sluiceebpf.OverlayIn, "sluice0", index); err != nil || a == nil || a.Action != "add" {
		t.Errorf("an inspection sees %+v, %v without a program", a, err)
	}
	return nil
}

func programOf(t *testing.T, dir string) ebpf.ProgramID {
	t.Helper()
	p, err := ebpf.LoadPinnedProgram(filepath.Join(dir, "prog_overlay_in"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, _ := info.ID()
	return id
}

// A directory that a newer build wrote, and a pin that is not ours, are refused.
func TestForeignPins(t *testing.T) {
	dir := bpffs(t)
	world(t, dir, node()).Close()
	if err := os.Rename(filepath.Join(dir, "vrfs_v2"), filepath.Join(dir, "vrfs_v3")); err != nil {
		t.Fatal(err)
	}
	_, err := sluiceebpf.Load(sluiceebpf.Config{Dir: dir, Node: node(), Bridges: bridges{}})
	if !errors.Is(err, sluiceebpf.ErrNewerLayout) {
		t.Errorf("a newer layout: %v", err)
	}
	if err := os.Rename(filepath.Join(dir, "vrfs_v3"), filepath.Join(dir, "vrfs_v2")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "vteps_v1")), os.Rename(filepath.Join(dir, "vrfs_v2"), filepath.Join(dir, "vteps_v1"))); err != nil {
		t.Fatal(err)
	}
	_, err = sluiceebpf.Load(sluiceebpf.Config{Dir: dir, Node: node(), Bridges: bridges{}})
	if !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("a foreign map: %v", err)
	}
	if _, err := sluiceebpf.Load(sluiceebpf.Config{Dir: t.TempDir(), Node: node()}); !errors.Is(err, sluiceebpf.ErrNotBPFFS) {
		t.Errorf("a plain directory: %v", err)
	}
}
