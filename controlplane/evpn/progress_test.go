package evpn

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestAppearsWhole: a router that appears while rows are to come is translated
// when they have come, and not touched again by that.
func TestAppearsWhole(t *testing.T) {
	rows := node(false).tenant(1, 1001).load()
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	if d := tr.Step(rows, ovn.Dirty{All: true}, false); !d.Empty() {
		t.Errorf("half of the rows make %+v", d)
	}
	d := tr.Step(rows, ovn.Dirty{}, true)
	if len(wanted.Of(d, intent.Gateways).Set) != 1 || len(wanted.Of(d, intent.ServedNextHops).Set) == 0 || len(wanted.Of(d, intent.Announcements).Set) == 0 {
		t.Errorf("all rows make %+v", d)
	}
	// What is there goes on to follow, whatever is to come for others.
	if d := tr.Step(rows, rows.Apply([]ovn.Change{ovn.Delete(ovn.TablePortBinding, "pb-vm-r1")}), false); len(wanted.Of(d, intent.Announcements).Delete) != 2 {
		t.Errorf("the VM's removal makes %+v", d)
	}
	if d := tr.Step(rows, ovn.Dirty{}, true); !d.Empty() {
		t.Errorf("nothing makes %+v", d)
	}
}

// TestNATToCome: a router keeps what it has while a NAT row is to come; one of
// which no NAT row was ever seen exposes nothing, and is pending.
func TestNATToCome(t *testing.T) {
	c := node(false).tenant(1, 1001).put(ovn.LogicalRouter{UUID: "nb-r1"}, ovn.LogicalSwitch{UUID: "nb-public"}, ovn.LogicalSwitch{UUID: "nb-ls-r1"})
	rows := c.load()
	rows.ExpectNB(true)
	tr := compute(c, testConfig())
	tr.Step(rows, ovn.Dirty{All: true}, true)
	before := announced(tr)
	if len(before) == 0 || tr.Pending(1001) {
		t.Fatalf("announced %v, pending %v", before, tr.Pending(1001))
	}
	d := rows.Apply([]ovn.Change{ovn.Set(ovn.LogicalRouter{UUID: "nb-r1", NAT: []ovn.UUID{"nat"}})})
	if diff := tr.Step(rows, d, true); !diff.Empty() {
		t.Errorf("a NAT row to come makes %+v", diff)
	}
	d = rows.Apply([]ovn.Change{ovn.Set(ovn.NAT{UUID: "nat", Type: "snat", ExternalIP: "172.24.4.1", LogicalIP: "10.10.0.0/24"})})
	tr.Step(rows, d, true)
	check(t, "announced with the NAT row", []string{"1001 2001:db8:10::5/128", "1001 2001:db8:ff::1/128"}, announced(tr))

	started := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	unseen := node(false).tenant(1, 1001).load()
	unseen.ExpectNB(true)
	started.Step(unseen, ovn.Dirty{All: true}, true)
	if got := announced(started); got != nil || !started.Pending(1001) || started.Pending(1002) {
		t.Errorf("announced %v, pending %v", got, started.Pending(1001))
	}
}

// TestBridgeBeforeGateway: a provider bridge is wanted as soon as a gateway port
// may come, and for as long.
func TestBridgeBeforeGateway(t *testing.T) {
	c := node(false).tenant(1, 1001).edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) {
		p.Chassis, p.HAChassisGroup = there, "group"
	})
	rows := c.load()
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	want := func(when string, bridges ...intent.BridgeKey) {
		t.Helper()
		all := tr.Tables()
		if len(wanted.Rows(all, intent.Bridges)) != len(bridges) || len(wanted.Rows(all, intent.Gateways)) != 0 {
			t.Errorf("%s: bridges %v, gateways %v", when, wanted.Rows(all, intent.Bridges), wanted.Rows(all, intent.Gateways))
		}
	}
	want("a gateway port of others")
	tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(ovn.HAChassisGroup{UUID: "group", Name: "ours too"})}), true)
	want("it may come", "br-ex")
	tr.Step(rows, rows.Apply([]ovn.Change{ovn.Delete(ovn.TableHAChassisGroup, "group")}), true)
	want("no more")
}
