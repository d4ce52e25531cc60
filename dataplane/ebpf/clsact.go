package ebpf

import (
	"errors"
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Of kernels before 6.6: one filter of the clsact qdisc. Its handle and
// priority are constant, so that setting it again replaces it in place.
const (
	filterHandle   = 1
	filterPriority = 1
)

func filterName(p Program) string { return "sluice_" + p.String() }

// ensureClsact makes the clsact qdisc of a device, or leaves the one that is there.
func ensureClsact(ifindex int) error {
	if err := netlink.QdiscReplace(clsact(ifindex)); err != nil {
		return fmt.Errorf("clsact qdisc: %w", err)
	}
	return nil
}

// ensureIngress leaves the qdisc that a device of the host's has: clsact, or ingress,
// which takes the same filters. One that is made stays when the filter goes: others
// may have put theirs in it.
func ensureIngress(ifindex int) error {
	err := netlink.QdiscAdd(clsact(ifindex))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("clsact qdisc: %w", err)
	}
	return nil
}

func clsact(ifindex int) *netlink.GenericQdisc {
	return &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
}

func filterAttrs(ifindex int, handle uint32, priority uint16) netlink.FilterAttrs {
	return netlink.FilterAttrs{LinkIndex: ifindex, Parent: netlink.HANDLE_MIN_INGRESS,
		Handle: handle, Priority: priority, Protocol: 0x0003} // ETH_P_ALL
}

// attachClsact needs the qdisc.
func attachClsact(p Program, r *running, ifindex int) error {
	running, err := checkFilters(p, r, ifindex)
	if err != nil || running {
		return err
	}
	return setFilter(p, r, ifindex)
}

// setFilter makes our filter or replaces its program.
func setFilter(p Program, r *running, ifindex int) error {
	filter := &netlink.BpfFilter{
		FilterAttrs: filterAttrs(ifindex, filterHandle, filterPriority),
		Fd:          r.prog.FD(), Name: filterName(p), DirectAction: true,
	}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	return nil
}

// checkFilters refuses a device where a foreign filter is in the place of ours or
// before it: what that one lets pass, or takes, is not ours to change. It tells
// whether the program runs already.
func checkFilters(p Program, r *running, ifindex int) (running bool, err error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return false, fmt.Errorf("find device %d: %w", ifindex, err)
	}
	all, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return false, fmt.Errorf("list filters: %w", err)
	}
	id, _ := r.id()
	for _, f := range all {
		at := f.Attrs()
		b, ok := f.(*netlink.BpfFilter)
		switch {
		case ok && b.Name == filterName(p):
			running = running || inPlace(b) && ebpf.ProgramID(b.Id) == id
		case at.Priority <= filterPriority:
			name := ""
			if ok {
				name = " " + b.Name
			}
			return false, fmt.Errorf("filter%s of type %s has priority %d and handle %#x, where Sluice's has to be; take it off (tc filter del): %w",
				name, f.Type(), at.Priority, at.Handle, reconcile.ErrForeign)
		}
	}
	return running, nil
}

func detachClsact(p Program, ifindex int) error {
	filters, err := ourFilters(p, ifindex)
	if err != nil {
		return err
	}
	for _, f := range filters {
		if err := netlink.FilterDel(f); err != nil && !isGone(err) {
			return fmt.Errorf("delete filter: %w", err)
		}
	}
	return nil
}

// replaceClsact replaces the program in every filter that carries its name. What
// else is on the device is for Attach to judge.
func replaceClsact(p Program, r *running) error {
	links, err := netlink.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		return fmt.Errorf("list devices: %w", err)
	}
	for _, l := range links {
		filters, err := ourFilters(p, l.Attrs().Index)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(filters, inPlace) {
			continue
		}
		if err := setFilter(p, r, l.Attrs().Index); err != nil {
			return fmt.Errorf("device %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

func inPlace(f *netlink.BpfFilter) bool {
	return f.Handle == filterHandle && f.Priority == filterPriority
}

func ourFilters(p Program, ifindex int) ([]*netlink.BpfFilter, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find device %d: %w", ifindex, err)
	}
	all, err := netlink.FilterList(l, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return nil, fmt.Errorf("list filters of device %d: %w", ifindex, err)
	}
	var out []*netlink.BpfFilter
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name == filterName(p) {
			out = append(out, b)
		}
	}
	return out, nil
}
