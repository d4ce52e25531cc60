package balancing

import (
	"errors"
	"log/slog"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/tapbalancing"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a node on which nothing happens.
type quiet struct{}

func (quiet) AllInSync() bool        { return true }
func (quiet) Calm() bool             { return true }
func (quiet) ConntrackFault() string { return "" }

func start(t *testing.T) (*Balancing, *taps.Taps) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	devices := taps.New(func() {}, log)
	return New(Config{Used: true, Translator: tapbalancing.Config{}, Readings: &loadbalancer.Book{}}, devices, quiet{}, tables.NewMaglevSizes(log), status.NewRegistry(log), log), devices
}

// Balancing on taps begins when all devices were looked for, and hears of those that are
// found later, by an event that touches nothing.
func TestTake(t *testing.T) {
	b, all := start(t)
	rows := ovn.NewRows()
	rows.FollowVMs(true)
	rows.FollowClients(true)
	take := func(changes ...ovn.Change) {
		dirty := rows.Apply(changes)
		all.LookFor(rows)
		b.Take(ovn.Event{Rows: rows, Dirty: dirty, InSync: ovn.InSync{SB: true, VSwitch: true, NB: true}})
	}
	found := func(devices map[string]intent.TapDevice) {
		all.Set(devices)
		take()
	}
	taken := func(when string, want ...uint32) {
		t.Helper()
		all := wanted.Rows(b.translator.Tables(), intent.TapClients)
		for _, index := range want {
			if _, there := all[intent.TapClientKey{IfIndex: index}]; !there || len(all) != len(want) {
				t.Errorf("%s: %v, want %d", when, all, want)
			}
		}
		if b.stepped != (len(want) > 0) {
			t.Errorf("%s: stepped is %t", when, b.stepped)
		}
	}
	plug := func(port string) []ovn.Change {
		return []ovn.Change{ovn.Set(ovn.Interface{UUID: ovn.UUID("if-" + port), Name: "tap" + port, IfaceID: port}),
			ovn.Set(ovn.Port{UUID: ovn.UUID("po-" + port), Name: "tap" + port, Interfaces: []ovn.UUID{ovn.UUID("if-" + port)}}),
			ovn.Set(ovn.PortBinding{UUID: ovn.UUID("pb-" + port), LogicalPort: port, Datapath: "red", Chassis: "here"})}
	}
	take(append(plug("vm0"), ovn.Set(ovn.Chassis{UUID: "here", Name: "a1"}), ovn.Set(ovn.OpenvSwitch{UUID: "ovs", ExternalIDs: map[string]string{"system-id": "a1"}}),
		ovn.Set(ovn.Bridge{UUID: "br-int", Name: "br-int", Ports: []ovn.UUID{"po-vm0", "po-vm1"}}),
		ovn.Set(ovn.DatapathBinding{UUID: "red", TunnelKey: 1, ExternalIDs: map[string]string{"logical-switch": "nb-red"}}))...)
	taken("nobody has looked")
	found(map[string]intent.TapDevice{"tapvm0": {Name: "tapvm0", IfIndex: 7}})
	taken("a device is there", 7)
	take(plug("vm1")...)
	taken("a VM comes", 7)
	found(map[string]intent.TapDevice{"tapvm0": {Name: "tapvm0", IfIndex: 7}, "tapvm1": {Name: "tapvm1", IfIndex: 8}})
	taken("its device is found", 7, 8)
	found(map[string]intent.TapDevice{"tapvm0": {Name: "tapvm0", IfIndex: 9}, "tapvm1": {Name: "tapvm1", IfIndex: 8}})
	taken("a device was made again", 9, 8)
}

// What is looked at each second tells why programs could not be replaced until they are.
func TestFailedReplacement(t *testing.T) {
	b, _ := start(t)
	b.running = &Running{}
	b.noteReplaced(errors.New("the kernel refuses it"))
	b.note()
	c := b.reg.Conditions()
	if len(c) != 1 || c[0].Name != condition || c[0].Ready || c[0].Reason != reason.StartFailed || c[0].Detail != "the kernel refuses it" {
		t.Errorf("%+v", c)
	}
}

// A step tells of the VIPs whose Maglev tables it changes.
func TestMaglevTablesOfAStep(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	r := &Running{Tables: tables.NewClients(tables.Drivers{}, func() bool { return true }, tables.Options{Status: status.NewRegistry(log), Log: log})}
	for i, slots := range []uint32{1021, 4093, 4093, 1021} {
		v := intent.VIP{Key: intent.VIPKey{VNI: 1001, Protocol: intent.UDP, Addr: netip.MustParseAddr("fd99::1"), Port: 53}, Slots: slots}
		d := wanted.Delta[intent.VIPKey, intent.VIP]{Set: map[intent.VIPKey]intent.VIP{v.Key: v}}
		if got := r.patch(wanted.With(wanted.Difference{}, intent.ClientVIPs, d), false); len(got) != i%2 {
			t.Errorf("change %d: %v", i, got)
		}
	}
}
