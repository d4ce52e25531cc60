package tapbalancing

import (
	"maps"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Config is the part of the node's configuration that the translation reads.
type Config struct {
	// TrustUnknown: a VM whose ACLs are not known is balanced all the same.
	TrustUnknown bool
}

// Needs adds to what other features need of OVN's rows.
func (c Config) Needs(n ovn.Needs) ovn.Needs {
	n.VMs, n.Clients, n.ACLs = true, true, true
	return n
}

// VM is a VM of this node on a switch with VIPs, and what balances its flows.
type VM struct {
	Port, Switch string
	Tap          intent.Tap
	Choice       loadbalancer.Choice
	// State is not OK if the VM lacks a tap that it should have.
	State status.State
}

// Translator keeps what is balanced on taps: the outcome of each switch with VMs here,
// and the tables made of them. It is used by one goroutine at a time.
type Translator struct {
	cfg      Config
	readings *loadbalancer.Book
	outcomes map[ovn.UUID]*outcome
	scopes   map[intent.VNI]*scope
	claims   map[intent.TapClientKey][]claim
	devices  map[string]intent.TapDevice
	book     acl.Book
	lists    lists
	// odd is what is wrong with NB_Global, or empty.
	odd string

	// What is to be computed in the next step that can be: switches, those of Interfaces
	// whose devices are others than before, or all.
	touched map[ovn.UUID]struct{}
	looked  map[string]struct{}
	whole   bool

	// stale: a database was not in sync in the last step.
	stale bool
	// stepped: both databases were in sync once.
	stepped bool
	// changes counts those of objects, partial the steps that were not of all switches.
	changes, partial uint64
}

// NewTranslator is one for which nothing is balanced yet.
func NewTranslator(cfg Config, readings *loadbalancer.Book) *Translator {
	return &Translator{
		cfg: cfg, readings: readings, outcomes: map[ovn.UUID]*outcome{}, scopes: map[intent.VNI]*scope{}, claims: map[intent.TapClientKey][]claim{},
		touched: map[ovn.UUID]struct{}{}, looked: map[string]struct{}{}, whole: true,
	}
}

// SetDevices are the devices that were found for Interfaces, by the Interface's name. They
// count from the next step on.
func (t *Translator) SetDevices(devices map[string]intent.TapDevice) {
	for name, d := range devices {
		if old, had := t.devices[name]; !had || old != d {
			t.looked[name] = struct{}{}
		}
	}
	for name := range t.devices {
		if _, has := devices[name]; !has {
			t.looked[name] = struct{}{}
		}
	}
	t.devices = maps.Clone(devices)
}

// Step computes the switches that were touched and returns what differs from the step
// before. While Southbound is not in sync nothing changes, nor does it before Northbound was
// for the first time. After that its rows stay while it is away; and while some are still to
// come, as when a switch gets a load balancer, what was known of a switch or a VM counts.
func (t *Translator) Step(rows *ovn.Rows, d ovn.Dirty, inSync ovn.InSync) wanted.Difference {
	maps.Copy(t.touched, d.Switches)
	t.whole = t.whole || d.All
	if t.stale = !inSync.SB || !inSync.NB && !t.stepped; t.stale {
		return wanted.Difference{}
	}
	t.stepped = true
	// Of another size all switches are touched.
	size, err := loadbalancer.CloudSize(rows.TableSize())
	t.readings.Follow(rows)
	whole := t.whole
	b := &build{rows: rows, cfg: t.cfg, complete: inSync.NB, whole: whole, readings: t.readings, book: &t.book, size: size, devices: t.devices, beyond: map[ovn.UUID][]side{}}
	s := newStep()
	for _, id := range t.take(rows) {
		next, waits := b.outcome(id, t.outcomes[id])
		if waits {
			t.touched[id] = struct{}{}
		}
		t.replace(s, id, next)
	}
	t.complain(err)
	t.forget(whole)
	return t.merge(s)
}

// take lists the switches that are to be computed, sorted, which are none any more then.
func (t *Translator) take(rows *ovn.Rows) []ovn.UUID {
	for name := range t.looked {
		for _, id := range rows.SwitchesAt(name) {
			t.touched[id] = struct{}{}
		}
	}
	out := slices.AppendSeq(make([]ovn.UUID, 0, len(t.touched)), maps.Keys(t.touched))
	if t.whole {
		out = slices.AppendSeq(append(out, rows.ServedSwitches()...), maps.Keys(t.outcomes))
	}
	t.whole = false
	clear(t.touched)
	clear(t.looked)
	slices.Sort(out)
	return slices.Compact(out)
}

// complain notes what is wrong with the size of tables of the whole cloud, which matters
// where there are any.
func (t *Translator) complain(err error) {
	odd := ""
	if err != nil && len(t.outcomes) > 0 {
		odd = err.Error()
	}
	if odd != t.odd {
		t.odd = odd
		t.changes++
	}
}

// often is after how many steps matches that nobody has asked for are forgotten: each step
// asks for few.
const often = 1000

func (t *Translator) forget(whole bool) {
	if t.partial++; whole || t.partial >= often {
		t.partial = 0
		t.book.Turn()
	}
}

// Stale tells whether the last step has left something, since a database was not in sync: so
// there has to be another when it is.
func (t *Translator) Stale() bool { return t.stale || len(t.touched) > 0 }
