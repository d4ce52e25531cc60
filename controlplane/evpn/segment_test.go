package evpn

import (
	"maps"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestKnownPortsOnce: the known ports of a provider network are denied once for
// all gateway ports on it, and go with the last of them.
func TestKnownPortsOnce(t *testing.T) {
	c := node(false)
	const tenants = 300
	for n := 1; n <= tenants; n++ {
		c.tenant(n, intent.VNI(1000+n))
	}
	rows := c.load()
	tr := NewTranslator(testConfig(), indices{})
	sum := NewTables()
	sum.apply(tr.Step(rows, ovn.Dirty{All: true}, true))
	// Three prefixes answered, and three addresses of its own, for each port;
	// and the same addresses, once each, for the segment.
	if n := len(tr.Tables().Served); n != 9*tenants {
		t.Errorf("%d rows of served for %d gateway ports, want %d", n, tenants, 9*tenants)
	}
	vm := pb("vm-public", ovn.TypeVIF, "ls-public", "02:00:00:00:09:09 172.24.9.99")
	d := tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(vm)}), true)
	sum.apply(d)
	key := intent.ServedKey{Gateway: intent.GatewayKey{Bridge: "br-ex"}, Prefix: host(addr("172.24.9.99"))}
	if got, ok := d.Served.Set[key]; !ok || got.Answer || len(d.Served.Set) != 2 || len(d.Served.Delete) != 0 {
		t.Errorf("one more port: %+v", d.Served)
	}
	var gone []ovn.Change
	for id, row := range c {
		if p, ok := row.(ovn.PortBinding); ok && p.Type == ovn.TypeChassisRedirect {
			gone = append(gone, ovn.Delete(ovn.TablePortBinding, ovn.UUID(id)))
		}
	}
	sum.apply(tr.Step(rows, rows.Apply(gone), true))
	if len(tr.Tables().Served) != 0 || len(sum.Served) != 0 || len(tr.segments) != 0 {
		t.Errorf("left over: %d rows, %d in the sum, %d segments", len(tr.Tables().Served), len(sum.Served), len(tr.segments))
	}
}

// TestKnownNextHop: a listed next hop is answered for, whoever owns the address.
func TestKnownNextHop(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1002)
	c.edit("lrp-gw-r2", func(p *ovn.PortBinding) { p.ExternalIDs[keyNextHops] = "172.24.4.1" })
	tr := compute(c, testConfig())
	first := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	second := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	served := tr.Tables().Served
	for _, row := range []struct {
		gateway intent.GatewayKey
		want    bool
	}{{first, false}, {second, true}, {first.Segment(), false}} {
		s, ok := served[intent.ServedKey{Gateway: row.gateway, Prefix: host(addr("172.24.4.1"))}]
		if !ok || s.Answer != row.want {
			t.Errorf("%s: there %t, answers %t, want %t", row.gateway, ok, s.Answer, row.want)
		}
	}
}

// apply makes the tables what a difference says.
func (t Tables) apply(d Difference) {
	patch(t.Bridges, d.Bridges)
	patch(t.KernelVRFs, d.KernelVRFs)
	patch(t.KernelGateways, d.KernelGateways)
	patch(t.VRFs, d.VRFs)
	patch(t.Policies, d.Policies)
	patch(t.Gateways, d.Gateways)
	patch(t.Served, d.Served)
	patch(t.Routes, d.Routes)
	patch(t.Steering, d.Steering)
	patch(t.Announcements, d.Announcements)
	patch(t.Relays, d.Relays)
	patch(t.Standby, d.Standby)
	patch(t.Learners, d.Learners)
}

func patch[K, V comparable](into map[K]V, d wanted.Delta[K, V]) {
	for _, k := range d.Delete {
		delete(into, k)
	}
	maps.Copy(into, d.Set)
}
