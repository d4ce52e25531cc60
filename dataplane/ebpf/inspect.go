package ebpf

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Inspection is what is pinned in a directory, opened for reading only, and
// what Load would make of it. The kernel refuses every write to its maps.
type Inspection struct {
	dir   string
	plane Plane
	hook  Hook
	node  Node
	specs map[string]*ebpf.MapSpec
	store *store
}

// Inspect opens what is pinned in cfg.Dir; anything of it may be missing, and
// another process may be writing it. It makes, loads and changes nothing.
func Inspect(cfg Config) (*Inspection, error) {
	limits := cfg.Limits.withDefaults()
	specs, err := cfg.Plane.mapSpecs(limits)
	if err != nil {
		return nil, err
	}
	i := &Inspection{dir: cfg.Dir, plane: cfg.Plane, hook: cfg.Hook, node: cfg.Node, specs: specs}
	older, err := i.checkDir()
	if err != nil {
		return nil, err
	}
	if len(older) > 0 {
		// Load begins with empty maps.
		i.store = newStore(tables{}, limits, cfg)
		i.store.readOnly = true
		return i, nil
	}
	if _, err := keepLarger(cfg.Dir, specs); err != nil {
		return nil, err
	}
	t := tables{}
	for name, spec := range specs {
		m, err := ebpf.LoadPinnedMap(pinOf(cfg.Dir, name), &ebpf.LoadPinOptions{ReadOnly: true})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !pinned.SameLayout(m, spec) {
			err = fmt.Errorf("holds a %s of other key and value sizes: %w", m.Type(), errors.Join(reconcile.ErrForeign, m.Close()))
		}
		if err != nil {
			t.close()
			return nil, fmt.Errorf("map %s in %s: %w", name, cfg.Dir, err)
		}
		t[name] = m
	}
	i.store = newStore(t, limits, cfg)
	i.store.readOnly = true
	if err := i.store.adopt(); err != nil {
		t.close()
		return nil, fmt.Errorf("read the pinned maps: %w", err)
	}
	return i, nil
}

// Close lets go of the maps.
func (i *Inspection) Close() error {
	i.store.t.close()
	return nil
}

// checkDir finds what Load would refuse. A directory that is not there is fine
// where its parent is on a bpffs.
func (i *Inspection) checkDir() (older []string, err error) {
	dir := i.dir
	_, err = os.Stat(dir)
	missing := errors.Is(err, fs.ErrNotExist)
	if missing {
		dir = filepath.Dir(dir)
	}
	if err := pinned.OnBPFFS(dir); err != nil || missing {
		return nil, err
	}
	return checkLayout(i.dir, i.specs)
}

// The drivers are as those of a Dataplane; they are there to List.

// VRFs lists the table VRFs.
func (i *Inspection) VRFs() *VRFs { return &VRFs{i.store} }

// Gateways lists the table Gateways.
func (i *Inspection) Gateways() *Gateways { return &Gateways{i.store} }

// Served lists the table Served.
func (i *Inspection) Served() *Served { return &Served{i.store} }

// VTEPs lists the table VTEPs.
func (i *Inspection) VTEPs() *VTEPs { return &VTEPs{i.store} }

// Routes lists the table Routes.
func (i *Inspection) Routes() *Routes { return &Routes{i.store} }

// Changes is what Load would do to the pinned maps and programs.
func (i *Inspection) Changes() ([]status.Change, error) {
	var out []status.Change
	for _, name := range slices.Sorted(maps.Keys(i.specs)) {
		spec := i.specs[name]
		m := i.store.t[name]
		c := status.Change{Table: "map", Key: name, Wanted: describeSize(spec.Type, spec.MaxEntries)}
		switch {
		case m == nil:
			c.Action = "add"
		case spec.Compatible(m) != nil:
			c.Action, c.Actual = "change", describeSize(spec.Type, m.MaxEntries())
		default:
			continue
		}
		out = append(out, c)
	}
	remade := len(out) > 0
	for _, p := range i.plane.programs() {
		action, actual, err := i.programChange(p, remade)
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", p, err)
		}
		if action != "" {
			out = append(out, status.Change{Table: "program", Key: p.String(), Action: action, Actual: actual, Wanted: "of this build, with this node's constants"})
		}
	}
	return out, nil
}

// describeSize is max_entries, which are bytes of a ring buffer.
func describeSize(t ebpf.MapType, entries uint32) string {
	if t == ebpf.RingBuf {
		return fmt.Sprintf("%d bytes", entries)
	}
	return fmt.Sprintf("%d rows", entries)
}

// programChange compares the pinned program with what loadProgram would load.
func (i *Inspection) programChange(p Program, mapsRemade bool) (action, actual string, err error) {
	spec, err := p.nodeSpec(i.node, i.specs)
	if err != nil {
		return "", "", err
	}
	return pinned.Change(i.dir, p.String(), spec, mapsRemade)
}

// Attachment is what Attach would do: nil when it would change nothing. A device
// of index 0 is yet to be made.
func (i *Inspection) Attachment(p Program, device string, ifindex int) (*status.Change, error) {
	c := &status.Change{Table: "attachment", Key: p.String() + " on " + device, Action: "add"}
	hook := i.hook.Pick()
	c.Wanted = "by " + hook.String()
	if ifindex == 0 {
		return c, nil
	}
	attached, id, err := i.attachedProgram(hook, p, ifindex)
	if err != nil {
		return nil, fmt.Errorf("%s on device %s: %w", p, device, err)
	}
	if !attached {
		return c, nil
	}
	switch second, err := pinned.Refuses(ifindex); {
	case !p.closes():
	case err != nil:
		return nil, fmt.Errorf("second line of device %s: %w", device, err)
	case !second:
		c.Action, c.Actual = "change", "no filter "+pinned.RefuseName+" behind the program"
		return c, nil
	}
	now, err := pinned.Open(i.dir, p.String())
	if err != nil {
		return nil, err
	}
	if now != nil {
		defer now.Close()
		if running, ok := now.ID(); ok && running == id {
			return nil, nil
		}
	}
	c.Action, c.Actual = "change", "another program than the pinned one"
	return c, nil
}

func (i *Inspection) attachedProgram(hook Hook, p Program, ifindex int) (ok bool, id ebpf.ProgramID, err error) {
	if hook == HookClsact {
		filters, err := p.at(i.dir).Filters(ifindex)
		if err != nil || len(filters) == 0 {
			return false, 0, err
		}
		return true, ebpf.ProgramID(filters[0].Id), nil
	}
	id, ok, err = p.at(i.dir).LinkedProgram(ifindex)
	return ok, id, err
}
