package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// vtepGuardName is the program that keeps outer sources that are no VTEPs from the
// VXLAN devices of VRFs. It belongs to a network namespace, not to a device, so that it
// is no Program.
const vtepGuardName = "vtep_guard"

func vtepGuardPin(dir string) string { return pinned.LinkPin(dir, vtepGuardName) }

// GuardVTEPs lets only the outer sources of the table VTEPs send to a UDP port of the
// calling thread's network namespace, and goes on doing so when the process has ended.
// Doing it again is no change. While rows wait for Promote, one that is there stays as
// it is: it knows the rows that forward.
func (d *Dataplane) GuardVTEPs(port uint16) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	ok, err := d.guardsVTEPs(port)
	if err == nil && !ok {
		err = d.guardVTEPs(port)
	}
	if err != nil {
		return fmt.Errorf("program %s: %w", vtepGuardName, err)
	}
	return nil
}

func (d *Dataplane) guardVTEPs(port uint16) error {
	if d.vtepGuard == nil || d.vtepGuardPort != port {
		prog, err := d.loadVTEPGuard(port)
		if err != nil {
			return err
		}
		d.vtepGuard.Close()
		d.vtepGuard, d.vtepGuardPort = prog, port
	}
	l, err := openVTEPGuard(d.pins())
	if err != nil {
		return err
	}
	if l != nil {
		defer l.Close()
		return l.Update(d.vtepGuard)
	}
	ns, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer ns.Close()
	made, err := link.AttachNetNs(int(ns.Fd()), d.vtepGuard)
	if err != nil {
		return err
	}
	// The pin holds it from here on.
	defer made.Close()
	if err := made.Pin(vtepGuardPin(d.pins())); err != nil {
		return fmt.Errorf("pin link: %w", err)
	}
	return nil
}

func (d *Dataplane) loadVTEPGuard(port uint16) (*ebpf.Program, error) {
	spec, err := loadVtepGuard()
	if err != nil {
		return nil, err
	}
	if err := specialize(spec, d.node, d.specs); err != nil {
		return nil, err
	}
	if err := spec.Variables["vxlan_port"].Set(port); err != nil {
		return nil, fmt.Errorf("set constants: %w", err)
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: d.tables})
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	defer c.Close()
	return c.DetachProgram(vtepGuardName), nil
}

// guardsVTEPs tells whether GuardVTEPs has nothing to do.
func (d *Dataplane) guardsVTEPs(port uint16) (bool, error) {
	l, err := openVTEPGuard(d.pins())
	if err != nil || l == nil {
		return false, err
	}
	defer l.Close()
	if len(d.older) > 0 {
		return true, nil
	}
	if d.vtepGuard == nil || d.vtepGuardPort != port {
		return false, nil
	}
	now, err := l.Info()
	if err != nil {
		return false, fmt.Errorf("read link: %w", err)
	}
	info, err := d.vtepGuard.Info()
	if err != nil {
		return false, err
	}
	id, ok := info.ID()
	return ok && id == now.Program, nil
}

// openVTEPGuard opens the pinned link. One whose namespace is gone is removed: nil.
func openVTEPGuard(dir string) (link.Link, error) {
	return pinned.OpenLink(vtepGuardPin(dir), ofNamespace)
}

func ofNamespace(info *link.Info) (ours, alive bool) {
	ns := info.NetNs()
	return ns != nil, ns != nil && ns.NetnsInode != 0
}

// UnguardVTEPs ends what GuardVTEPs began: no device needs it any more. If it never
// did, there is nothing to do.
func (d *Dataplane) UnguardVTEPs() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return detachVTEPGuard(d.pins())
}

func detachVTEPGuard(dir string) error {
	if err := pinned.Detach(vtepGuardPin(dir), ofNamespace); err != nil {
		return fmt.Errorf("program %s: %w", vtepGuardName, err)
	}
	return nil
}

// VTEPGuard is what GuardVTEPs would do: nil when it would change nothing that shows.
func (i *Inspection) VTEPGuard() (*status.Change, error) {
	l, err := link.LoadPinnedLink(vtepGuardPin(i.dir), nil)
	if errors.Is(err, fs.ErrNotExist) {
		return &status.Change{Table: "attachment", Key: vtepGuardName + " on the network namespace", Action: "add"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", vtepGuardName, err)
	}
	return nil, l.Close()
}
