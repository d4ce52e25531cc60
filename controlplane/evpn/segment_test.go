package evpn

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
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
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	sum := wanted.NewSet()
	sum.Apply(tr.Step(rows, ovn.Dirty{All: true}, true))
	// Three prefixes answered, and three addresses of its own, for each port;
	// and the same addresses, once each, for the segment.
	if n := len(wanted.Rows(tr.Tables(), intent.ServedNextHops)); n != 9*tenants {
		t.Errorf("%d rows of served for %d gateway ports, want %d", n, tenants, 9*tenants)
	}
	vm := pb("vm-public", ovn.TypeVIF, "ls-public", "02:00:00:00:09:09 172.24.9.99")
	d := tr.Step(rows, rows.Apply([]ovn.Change{ovn.Set(vm)}), true)
	sum.Apply(d)
	key := intent.ServedKey{Gateway: intent.GatewayKey{Bridge: "br-ex"}, Prefix: host(addr("172.24.9.99"))}
	if got, ok := wanted.Of(d, intent.ServedNextHops).Set[key]; !ok || got.Answer || len(wanted.Of(d, intent.ServedNextHops).Set) != 2 || len(wanted.Of(d, intent.ServedNextHops).Delete) != 0 {
		t.Errorf("one more port: %+v", wanted.Of(d, intent.ServedNextHops))
	}
	var gone []ovn.Change
	for id, row := range c {
		if p, ok := row.(ovn.PortBinding); ok && p.Type == ovn.TypeChassisRedirect {
			gone = append(gone, ovn.Delete(ovn.TablePortBinding, ovn.UUID(id)))
		}
	}
	sum.Apply(tr.Step(rows, rows.Apply(gone), true))
	if len(wanted.Rows(tr.Tables(), intent.ServedNextHops)) != 0 || len(wanted.Rows(sum, intent.ServedNextHops)) != 0 || len(tr.segments) != 0 {
		t.Errorf("left over: %d rows, %d in the sum, %d segments", len(wanted.Rows(tr.Tables(), intent.ServedNextHops)), len(wanted.Rows(sum, intent.ServedNextHops)), len(tr.segments))
	}
}

// TestKnownNextHop: a listed next hop is answered for, whoever owns the address.
func TestKnownNextHop(t *testing.T) {
	c := node(false).tenant(1, 1001).tenant(2, 1002)
	c.edit("lrp-gw-r2", func(p *ovn.PortBinding) { p.ExternalIDs[keyNextHops] = "172.24.4.1" })
	tr := compute(c, testConfig())
	first := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	second := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 2}}
	served := wanted.Rows(tr.Tables(), intent.ServedNextHops)
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
