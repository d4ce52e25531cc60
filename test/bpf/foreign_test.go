package bpf_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// passing is a program that is not Sluice's and lets everything pass.
func passing(t *testing.T) *ebpf.Program {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// A foreign program before ours would hand tenants' packets to the host.
func TestForeignProgramBeforeOurs(t *testing.T) {
	t.Run("tcx", foreignProgramBeforeOurs)
}

func foreignProgramBeforeOurs(t *testing.T) {
	ns, index := namespace(t)
	dir := bpffs(t)
	err := ns.Do(func() error {
		d := load(t, sluiceebpf.Config{Dir: dir, Node: node(), Hook: sluiceebpf.HookTCX, Limits: fewRows})
		if err := d.Attach(sluiceebpf.OverlayIn, index); err != nil {
			return err
		}
		foreign := passing(t)
		info, err := foreign.Info()
		if err != nil {
			return err
		}
		id, _ := info.ID()
		head, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: foreign, Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		if err != nil {
			return err
		}
		err = d.Attach(sluiceebpf.OverlayIn, index)
		if !errors.Is(err, reconcile.ErrForeign) || !strings.Contains(err.Error(), strconv.Itoa(int(id))) {
			t.Errorf("with program %d before ours: %v", id, err)
		}
		if err := errors.Join(head.Close(), d.Attach(sluiceebpf.OverlayIn, index)); err != nil {
			t.Errorf("once it is gone: %v", err)
		}
		tail, err := link.AttachTCX(link.TCXOptions{Interface: index, Program: foreign, Attach: ebpf.AttachTCXIngress, Anchor: link.Tail()})
		if err != nil {
			return err
		}
		defer tail.Close()
		return d.Attach(sluiceebpf.OverlayIn, index)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A foreign filter in the place of ours is an error that names it, and stays.
func TestForeignFilter(t *testing.T) {
	ns, index := namespace(t)
	dir := bpffs(t)
	err := ns.Do(func() error {
		filter := &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS,
			Handle: 1, Priority: 1, Protocol: 3}, Fd: passing(t).FD(), Name: "theirs", DirectAction: true}
		if err := errors.Join(netlink.QdiscAdd(clsactOf(index)), netlink.FilterAdd(filter)); err != nil {
			return err
		}
		d := load(t, sluiceebpf.Config{Dir: dir, Node: node(), Hook: sluiceebpf.HookClsact, Limits: fewRows})
		if err := d.Attach(sluiceebpf.OverlayIn, index); !errors.Is(err, reconcile.ErrForeign) || !strings.Contains(err.Error(), "theirs") {
			t.Errorf("with a filter in the place: %v", err)
		}
		filters, err := netlink.FilterList(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Index: index}}, netlink.HANDLE_MIN_INGRESS)
		if err != nil {
			return err
		}
		// The last filter is the second line.
		if len(filters) != 2 || filters[0].(*netlink.BpfFilter).Name != "theirs" {
			t.Errorf("the device has the filters %v", filters)
		}
		if err := netlink.FilterDel(filter); err != nil {
			return err
		}
		// Behind ours it does no harm.
		filter.Priority = 2
		return errors.Join(d.Attach(sluiceebpf.OverlayIn, index), netlink.FilterAdd(filter), d.Attach(sluiceebpf.OverlayIn, index))
	})
	if err != nil {
		t.Fatal(err)
	}
}
