package pinned

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Of kernels before 6.6: one filter of the clsact qdisc. Its handle and
// priority stay the same, so that setting it again replaces it in place. They are
// these, but for the priority of a filter that may be anywhere.
const (
	filterHandle   = 1
	filterPriority = 1
)

const filterPrefix = "sluice_"

func (at Place) filterName() string { return filterPrefix + at.Program }

// ensureClsact makes the clsact qdisc of a device, or leaves the one that is there.
func ensureClsact(ifindex int) error {
	if err := netlink.QdiscReplace(clsact(ifindex)); err != nil {
		return fmt.Errorf("clsact qdisc: %w", err)
	}
	return nil
}

// EnsureIngress leaves the qdisc that a device of the host's has: clsact, or ingress,
// which takes the same filters. One that is made stays when the filter goes: others
// may have put theirs in it.
func EnsureIngress(ifindex int) error { return ensureQdisc(clsact(ifindex)) }

// EnsureTapIngress is EnsureIngress for a VM's tap, where the qdisc that is made is
// ingress: libvirt and Open vSwitch, which limit what a VM sends, remove that one and
// make theirs. With clsact there they could do neither.
func EnsureTapIngress(ifindex int) error {
	return ensureQdisc(&netlink.Ingress{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_INGRESS},
	})
}

// EnsureEgress makes the clsact qdisc of a device whose egress a program is for. A qdisc
// ingress has its place, and no egress: one with no filters but Sluice's gives way to it,
// and the filters change over.
func EnsureEgress(ifindex int) error {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return fmt.Errorf("find device %d: %w", ifindex, err)
	}
	list, err := netlink.QdiscList(l)
	if err != nil {
		return fmt.Errorf("list qdiscs of device %d: %w", ifindex, err)
	}
	for _, q := range list {
		if _, ok := q.(*netlink.Ingress); ok {
			return ingressToClsact(ifindex, q)
		}
	}
	return ensureQdisc(clsact(ifindex))
}

func ingressToClsact(ifindex int, old netlink.Qdisc) error {
	all, err := filters(ifindex, netlink.HANDLE_MIN_INGRESS)
	if err != nil {
		return err
	}
	var ours []*netlink.BpfFilter
	for _, f := range all {
		b, ok := f.(*netlink.BpfFilter)
		if !ok || !strings.HasPrefix(b.Name, filterPrefix) {
			return fmt.Errorf("its qdisc ingress has a filter of type %s, and clsact, whose egress is needed, cannot be beside it: %w", f.Type(), reconcile.ErrForeign)
		}
		program, err := ebpf.NewProgramFromID(ebpf.ProgramID(b.Id))
		if err != nil {
			return fmt.Errorf("program of filter %s: %w", b.Name, err)
		}
		defer program.Close()
		b.Fd = program.FD()
		ours = append(ours, b)
	}
	if err := netlink.QdiscDel(old); err != nil {
		return fmt.Errorf("remove qdisc ingress: %w", err)
	}
	err = ensureQdisc(clsact(ifindex))
	for _, f := range ours {
		if err == nil {
			err = netlink.FilterReplace(f)
		}
	}
	if err != nil {
		return fmt.Errorf("change the qdisc ingress to clsact: %w", err)
	}
	return nil
}

func ensureQdisc(q netlink.Qdisc) error {
	if err := netlink.QdiscAdd(q); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s qdisc: %w", q.Type(), err)
	}
	return nil
}

func clsact(ifindex int) *netlink.GenericQdisc {
	return &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT},
		QdiscType:  "clsact",
	}
}

func filterAttrs(ifindex int, parent, handle uint32, priority uint16) netlink.FilterAttrs {
	return netlink.FilterAttrs{LinkIndex: ifindex, Parent: parent,
		Handle: handle, Priority: priority, Protocol: 0x0003} // ETH_P_ALL
}

// Filter attaches a program to a device by a filter, or makes it that of the filter that
// is there. It needs the qdisc.
func (at Place) Filter(p *Program, ifindex int) error {
	running, err := at.HasFilter(p, ifindex)
	if err != nil || running {
		return err
	}
	if err := p.holdCall(at.Dir, at.Program); err != nil {
		return err
	}
	priority := uint16(filterPriority)
	if at.Anywhere {
		if priority, err = at.priority(ifindex); err != nil {
			return err
		}
	}
	return at.setFilter(p, ifindex, priority)
}

// priority is that of the program's filter, or the first that is free.
func (at Place) priority(ifindex int) (uint16, error) {
	all, err := filters(ifindex, at.parent())
	if err != nil {
		return 0, err
	}
	taken := map[uint16]bool{}
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && at.owns(b) {
			return b.Priority, nil
		}
		taken[f.Attrs().Priority] = true
	}
	for priority := uint16(filterPriority); priority < refusePriority; priority++ {
		if !taken[priority] {
			return priority, nil
		}
	}
	return 0, errors.New("no priority of a filter is free")
}

// setFilter makes our filter or replaces its program.
func (at Place) setFilter(p *Program, ifindex int, priority uint16) error {
	filter := &netlink.BpfFilter{
		FilterAttrs: filterAttrs(ifindex, at.parent(), filterHandle, priority),
		Fd:          p.FD(), Name: at.filterName(), DirectAction: true,
	}
	if err := netlink.FilterReplace(filter); err != nil {
		return fmt.Errorf("filter: %w", err)
	}
	return nil
}

// HasFilter refuses a device where a foreign filter is in the place of ours or
// before it: what that one lets pass, or takes, is not ours to change. It tells
// whether the program runs already.
func (at Place) HasFilter(p *Program, ifindex int) (running bool, err error) {
	all, err := filters(ifindex, at.parent())
	if err != nil {
		return false, err
	}
	id, _ := p.ID()
	for _, f := range all {
		is := f.Attrs()
		b, ok := f.(*netlink.BpfFilter)
		switch {
		case ok && b.Name == at.filterName():
			running = running || at.owns(b) && ebpf.ProgramID(b.Id) == id
		case is.Priority <= filterPriority && !at.Anywhere:
			name := ""
			if ok {
				name = " " + b.Name
			}
			return false, fmt.Errorf("filter%s of type %s has priority %d and handle %#x, where Sluice's has to be; take it off (tc filter del): %w",
				name, f.Type(), is.Priority, is.Handle, reconcile.ErrForeign)
		}
	}
	return running, nil
}

// owns tells whether a filter carries the program's name, where setting it again replaces it.
func (at Place) owns(f *netlink.BpfFilter) bool {
	return f.Name == at.filterName() && f.Handle == filterHandle && (at.Anywhere || f.Priority == filterPriority)
}

// filters lists all of a device's ingress or egress.
func filters(ifindex int, parent uint32) ([]netlink.Filter, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return nil, fmt.Errorf("find device %d: %w", ifindex, err)
	}
	all, err := netlink.FilterList(l, parent)
	if err != nil {
		return nil, fmt.Errorf("list filters of device %d: %w", ifindex, err)
	}
	return all, nil
}

// Unfilter takes the program's filters off a device.
func (at Place) Unfilter(ifindex int) error {
	ours, err := at.Filters(ifindex)
	if err != nil {
		return err
	}
	for _, f := range ours {
		if err := netlink.FilterDel(f); err != nil && !isGone(err) {
			return fmt.Errorf("delete filter: %w", err)
		}
	}
	return nil
}

// isGone tells whether an error says that a device is not there.
func isGone(err error) bool { return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) }

// replaceFilters replaces the program in every filter that carries its name. What
// else is on the device is for whoever attaches to judge.
func (at Place) replaceFilters(p *Program) error {
	links, err := devices()
	if err != nil {
		return err
	}
	for _, l := range links {
		ours, err := at.Filters(l.Attrs().Index)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(ours, at.owns)
		if i < 0 {
			continue
		}
		if err := at.setFilter(p, l.Attrs().Index, ours[i].Priority); err != nil {
			return fmt.Errorf("device %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

// Filtered lists the devices that have a filter of the program in its place.
func (at Place) Filtered() ([]int, error) {
	links, err := devices()
	if err != nil {
		return nil, err
	}
	var out []int
	for _, l := range links {
		has, err := at.HasAnyFilter(l.Attrs().Index)
		if err != nil {
			return nil, err
		}
		if has {
			out = append(out, l.Attrs().Index)
		}
	}
	return out, nil
}

func devices() ([]netlink.Link, error) {
	links, err := link.Dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	return links, nil
}

// UnfilterAll takes the program's filters off all devices.
func (at Place) UnfilterAll() error {
	links, err := devices()
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := at.Unfilter(l.Attrs().Index); err != nil {
			return fmt.Errorf("device %s: %w", l.Attrs().Name, err)
		}
	}
	return nil
}

// HasAnyFilter tells whether a filter of the program is in its place on a device,
// whichever build's program it has.
func (at Place) HasAnyFilter(ifindex int) (bool, error) {
	ours, err := at.Filters(ifindex)
	return slices.ContainsFunc(ours, at.owns), err
}

// Filters are the program's on a device. A device that is gone has none.
func (at Place) Filters(ifindex int) ([]*netlink.BpfFilter, error) {
	all, err := filters(ifindex, at.parent())
	if errors.As(err, &netlink.LinkNotFoundError{}) || isGone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*netlink.BpfFilter
	for _, f := range all {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name == at.filterName() {
			out = append(out, b)
		}
	}
	return out, nil
}
