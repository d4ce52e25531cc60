package evpn

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// TestNodeIsNeighbour: the node's own address on the provider bridge, in a network
// of the gateway port, is a neighbour that Sluice does not answer in place of.
func TestNodeIsNeighbour(t *testing.T) {
	for name, row := range map[string]struct {
		host    ovn.HostAddresses
		answers bool
	}{
		"no address":           {answers: true},
		"IPv4":                 {host: ovn.HostAddresses{"br-ex": {addr("172.24.0.1")}}},
		"IPv6":                 {host: ovn.HostAddresses{"br-ex": {addr("2001:db8:ff::1:1")}}},
		"of another network":   {host: ovn.HostAddresses{"br-ex": {addr("192.0.2.1"), addr("2001:db8:1::1")}}, answers: true},
		"on another device":    {host: ovn.HostAddresses{"br-int": {addr("172.24.0.1")}, "eth0": {addr("2001:db8:ff::1:1")}}, answers: true},
		"one of several":       {host: ovn.HostAddresses{"br-ex": {addr("192.0.2.1"), addr("172.24.0.1")}}},
		"the next hop's place": {host: ovn.HostAddresses{"br-ex": {addr("172.24.255.254")}}},
	} {
		t.Run(name, func(t *testing.T) {
			rows := node(false).tenant(1, 1001).load()
			tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
			tr.Step(rows, ovn.Dirty{All: true}, true)
			without := len(wanted.Rows(tr.Tables(), intent.ServedNextHops))
			changed := rows.SetHostAddresses(row.host)
			if changed != (len(row.host["br-ex"]) > 0) {
				t.Errorf("changed: %t", changed)
			}
			tr.Step(rows, ovn.Dirty{All: changed}, true)
			if got := wanted.Rows(tr.Tables(), intent.ServedNextHops); len(got) > 0 != row.answers {
				t.Errorf("answers %d rows, without addresses %d", len(got), without)
			}
			if len(wanted.Rows(tr.Tables(), intent.SteeringFlows)) == 0 || without == 0 {
				t.Error("there is nothing to compare")
			}
			rows.SetHostAddresses(nil)
			tr.Step(rows, ovn.Dirty{All: changed}, true)
			if n := len(wanted.Rows(tr.Tables(), intent.ServedNextHops)); n != without {
				t.Errorf("%d rows once the address is gone, before it %d", n, without)
			}
		})
	}
	// A next hop that is listed is answered all the same.
	cfg := testConfig()
	cfg.NextHops = map[string][]netip.Addr{"physnet1": {addr("172.24.4.254")}}
	rows := node(false).tenant(1, 1001).load()
	rows.SetHostAddresses(ovn.HostAddresses{"br-ex": {addr("172.24.0.1")}})
	tr := NewTranslator(cfg, indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	check(t, "served", []string{"172.24.4.254/32 true"}, servedRows(tr))
}
