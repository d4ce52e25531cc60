package steering

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Maps is what the driver needs of package taps; *taps.Taps has it. Devices are those of
// the calling thread's namespace.
type Maps interface {
	// Sources lists what Put was given; one of which a part is missing has no Answer.
	Sources() ([]taps.Source, error)
	Put(s taps.Source) error
	Remove(s taps.Source) error
	// Attach puts the program on a tap, Detach takes it off, and Attached lists those that
	// have it.
	Attach(ifindex uint32) error
	Detach(ifindex uint32) error
	Attached() ([]uint32, error)
}

// Config is what a Driver is told. Maps and File are required.
type Config struct {
	Maps Maps
	// File is the one of package identity.
	File string
	// Node is where the taps are.
	Node netns.Namespace
	// Names are those of networks' namespaces.
	Names namespace.Names
	// Now may be nil.
	Now func() time.Time
	// Log may be nil.
	Log *slog.Logger
}

// Driver is the driver of intent.MetadataPort.
type Driver struct {
	config Config
	write  func(string, *identity.Table) error

	pool *identity.Pool
	held map[identity.Number]struct{}
	// entries are what the file has, rows what the maps have, and attached the devices
	// that have the program.
	entries  map[string]*entry
	whole    bool // the file says no less than entries
	rows     rows
	attached map[uint32]struct{}
	listed   bool

	mu sync.Mutex
	// names are of the taps that rows name, and named those before the last List.
	names, named map[string]struct{}
}

var _ reconcile.Driver[string, intent.MetadataPort] = (*Driver)(nil)

// New does no I/O.
func New(config Config) *Driver {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	// What rested before a restart is not known. Numbers are given out more slowly than
	// time goes here, so those that were given out last are behind it.
	start := identity.Number(config.Now().UnixMilli() % int64(identity.Max))
	return &Driver{
		config: config, write: identity.Write, pool: identity.NewPool(identity.Max, start), held: map[identity.Number]struct{}{},
		entries: map[string]*entry{}, rows: rows{}, attached: map[uint32]struct{}{}, names: map[string]struct{}{},
	}
}

// unowned is the key under which List has the rows and the program of a device that the
// file says nothing of. Names of ports do not have its form.
func unowned(ifindex uint32) string { return fmt.Sprintf("(nobody's on device %d)", ifindex) }

func unownedOf(key string) (ifindex uint32, ok bool) {
	word, begins := strings.CutPrefix(key, "(nobody's on device ")
	word, ends := strings.CutSuffix(word, ")")
	n, err := strconv.ParseUint(word, 10, 32)
	return uint32(n), begins && ends && err == nil
}

// List has a port with the zero value if file, maps, program and device do not say the
// same of it, and the key of unowned for what belongs to no port.
func (d *Driver) List(context.Context) (map[string]intent.MetadataPort, error) {
	devices, err := d.look()
	if err != nil {
		return nil, err
	}
	d.entries, d.whole = d.read()
	d.listed = true
	d.forgetNames()
	d.count()
	out := make(map[string]intent.MetadataPort, len(d.entries))
	left := maps.Clone(d.rows)
	used := map[uint32]struct{}{}
	for name, e := range d.entries {
		out[name] = e.value
		used[e.value.Tap.IfIndex] = struct{}{}
		d.name(e.value.Tap)
		if !d.intact(e, devices) {
			out[name] = intent.MetadataPort{}
		}
		for _, s := range e.sources() {
			delete(left, bare(s))
		}
	}
	owners := d.owners()
	for s := range left {
		if name, owned := owners[identity.Number(s.Number)]; owned {
			out[name] = intent.MetadataPort{}
		} else {
			out[unowned(s.IfIndex)] = intent.MetadataPort{}
		}
	}
	for ifindex := range d.attached {
		if _, ok := used[ifindex]; !ok {
			out[unowned(ifindex)] = intent.MetadataPort{}
		}
	}
	return out, nil
}

// look reads what the maps have, and the names of devices.
func (d *Driver) look() (devices map[uint32]string, err error) {
	sources, err := d.config.Maps.Sources()
	if err != nil {
		return nil, err
	}
	var attached []uint32
	if err := d.config.Node.Do(func() (err error) { attached, err = d.config.Maps.Attached(); return err }); err != nil {
		return nil, err
	}
	if devices, err = d.devices(); err != nil {
		return nil, err
	}
	d.rows, d.attached = rows{}, map[uint32]struct{}{}
	for _, s := range sources {
		d.rows[bare(s)] = s.Answer
	}
	for _, ifindex := range attached {
		d.attached[ifindex] = struct{}{}
	}
	return devices, nil
}

// isThere tells whether a device has an index and a name.
func (d *Driver) isThere(t intent.Tap) (bool, error) {
	name := ""
	err := d.config.Node.Netlink(func(h *netlink.Handle) error {
		l, err := h.LinkByIndex(int(t.IfIndex))
		if err == nil {
			name = l.Attrs().Name
		}
		return err
	})
	var none netlink.LinkNotFoundError
	if err != nil && !errors.As(err, &none) {
		return false, fmt.Errorf("device %s: %w", t.Name, err)
	}
	return name == t.Name, nil
}

// devices are the names of all, by their index.
func (d *Driver) devices() (map[uint32]string, error) {
	out := map[uint32]string{}
	err := d.config.Node.Netlink(func(h *netlink.Handle) error {
		links, err := link.Dump(h.LinkList)
		for _, l := range links {
			out[uint32(l.Attrs().Index)] = l.Attrs().Name
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing links: %w", err)
	}
	return out, nil
}

// intact tells whether what the file says of a port is so.
func (d *Driver) intact(e *entry, devices map[uint32]string) bool {
	if !d.whole || !e.complete() {
		return false
	}
	if e.value.Tap == (intent.Tap{}) {
		return true
	}
	if devices[e.value.Tap.IfIndex] != e.value.Tap.Name {
		return false
	}
	if _, ok := d.attached[e.value.Tap.IfIndex]; !ok {
		return false
	}
	return !slices.ContainsFunc(e.sources(), func(s taps.Source) bool { return !d.rows.has(s) })
}

// owners are the ports that have numbers.
func (d *Driver) owners() map[identity.Number]string {
	out := map[identity.Number]string{}
	for name, e := range d.entries {
		for _, n := range e.numbers {
			out[n] = name
		}
	}
	return out
}
