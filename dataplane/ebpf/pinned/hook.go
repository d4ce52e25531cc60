package pinned

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// Hook is a way to attach a program to a device's ingress.
type Hook uint8

// The hooks.
const (
	// HookAuto is tcx where the kernel has it, else clsact.
	HookAuto Hook = iota
	// HookTCX is a tcx link (kernel 6.6 and later).
	HookTCX
	// HookClsact is a filter of the clsact qdisc.
	HookClsact
)

func (h Hook) String() string {
	switch h {
	case HookTCX:
		return "tcx"
	case HookClsact:
		return "clsact"
	}
	return "auto"
}

// Pick turns auto into what the kernel has.
func (h Hook) Pick() Hook {
	switch {
	case h != HookAuto:
		return h
	case haveTCX():
		return HookTCX
	}
	return HookClsact
}

// haveTCX asks the kernel for the programs of a device that there is in every
// namespace; only kernels with tcx know the question.
func haveTCX() bool {
	_, err := link.QueryPrograms(link.QueryOptions{Target: 1, Attach: ebpf.AttachTCXIngress})
	return err == nil
}

// Place is where a program is attached: the ingress, or the egress, of devices of the
// calling thread's network namespace.
type Place struct {
	// Dir is where links are pinned.
	Dir string
	// Program is its name.
	Program string
	// Egress: the program is for what leaves the devices.
	Egress bool
	// First: what another program lets pass before it is an error, since nothing that
	// comes to the device is for others.
	First bool
	// Anywhere: its filter takes the first priority that is free, and whatever is before
	// it stays. Else it has the very first, and a foreign one there is an error.
	Anywhere bool
}

// hook is where tcx has the program, parent where filters are.
func (at Place) hook() ebpf.AttachType {
	if at.Egress {
		return ebpf.AttachTCXEgress
	}
	return ebpf.AttachTCXIngress
}

func (at Place) parent() uint32 {
	if at.Egress {
		return netlink.HANDLE_MIN_EGRESS
	}
	return netlink.HANDLE_MIN_INGRESS
}

// Update replaces the program wherever it is attached by a hook, in place.
func (at Place) Update(hook Hook, p *Program) error {
	if err := p.holdCall(at.Dir, at.Program); err != nil {
		return err
	}
	if hook != HookTCX {
		return at.replaceFilters(p)
	}
	return at.updateLinks(p)
}

// Adopt makes a loaded program the one that runs wherever it is attached. A pinned
// program that equals it is kept instead, so that a plain restart changes nothing. It
// gives back the one that runs, and closes the other; on an error loaded stays open.
func (at Place) Adopt(hook Hook, loaded *Program) (now *Program, replaced bool, err error) {
	was, err := Open(at.Dir, at.Program)
	if err != nil {
		return nil, false, err
	}
	if was != nil && was.Same(loaded) {
		if err := at.Update(hook, was); err != nil {
			was.Close()
			return nil, false, err
		}
		loaded.Close()
		return was, false, nil
	}
	defer was.Close()
	if err := at.Update(hook, loaded); err != nil {
		return nil, false, err
	}
	return loaded, was != nil, loaded.PinAs(at.Dir, at.Program)
}
