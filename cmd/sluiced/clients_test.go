package main

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/taps"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// Balancing on taps begins when all devices were looked for, and hears of those that are
// found later, by an event that touches nothing.
func TestClientsTake(t *testing.T) {
	d := &daemon{cfg: config.Default(), reg: status.NewRegistry(slog.New(slog.DiscardHandler))}
	d.cfg.LoadBalancing.Enabled = true
	d.taps, d.clients = newTaps(d), newClients(d)
	rows := ovn.NewRows()
	rows.FollowMachines(true)
	rows.FollowClients(true)
	take := func(changes ...ovn.Change) {
		dirty := rows.Apply(changes)
		d.taps.lookFor(rows)
		d.clients.take(ovn.Event{Rows: rows, Dirty: dirty, InSync: ovn.InSync{SB: true, VSwitch: true, NB: true}})
	}
	found := func(devices map[string]taps.Device) {
		d.taps.devices, d.taps.found = devices, d.taps.found+1
		take()
	}
	taken := func(when string, want ...uint32) {
		t.Helper()
		all := wanted.Rows(d.clients.translator.Tables(), intent.Clients)
		for _, index := range want {
			if _, there := all[intent.ClientKey{IfIndex: index}]; !there || len(all) != len(want) {
				t.Errorf("%s: %v, want %d", when, all, want)
			}
		}
		if d.clients.stepped != (len(want) > 0) {
			t.Errorf("%s: stepped is %t", when, d.clients.stepped)
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
	found(map[string]taps.Device{"tapvm0": {Name: "tapvm0", IfIndex: 7}})
	taken("a device is there", 7)
	take(plug("vm1")...)
	taken("a machine comes", 7)
	found(map[string]taps.Device{"tapvm0": {Name: "tapvm0", IfIndex: 7}, "tapvm1": {Name: "tapvm1", IfIndex: 8}})
	taken("its device is found", 7, 8)
	found(map[string]taps.Device{"tapvm0": {Name: "tapvm0", IfIndex: 9}, "tapvm1": {Name: "tapvm1", IfIndex: 8}})
	taken("a device was made again", 9, 8)
}

// What is looked at each second tells why programs could not be replaced until they are.
func TestClientsFailedReplacement(t *testing.T) {
	d := &daemon{cfg: config.Default(), reg: status.NewRegistry(slog.New(slog.DiscardHandler))}
	d.clients = newClients(d)
	d.clients.at = &clientsAtWork{}
	d.clients.noteReplaced(errors.New("the kernel refuses it"))
	d.clients.note()
	for _, c := range d.reg.Conditions() {
		if c.Name == clientsCondition && (c.Ready || c.Reason != reason.StartFailed || c.Detail != "the kernel refuses it") {
			t.Errorf("%+v", c)
		}
	}
}
