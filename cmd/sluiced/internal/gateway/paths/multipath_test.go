package paths

import (
	"errors"
	"maps"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// A setting of the node is told of while there is a route that it matters to.
func TestOneWay(t *testing.T) {
	p, rows := onKernel(t, "10.0.0.0/24", "fd00::/64")
	var asked []bool
	answer, failure := false, error(nil)
	p.hashPorts = func(ipv6 bool) (bool, error) {
		asked = append(asked, ipv6)
		return answer, failure
	}
	if got := p.oneWay(); len(got) != 0 || len(asked) != 0 {
		t.Errorf("without a choice: %+v, asked %v", got, asked)
	}

	add := func(text string, hops ...string) {
		k := intent.NewRouteKey(1001, netip.MustParsePrefix(text))
		var list []intent.NextHop
		for _, h := range hops {
			list = append(list, intent.NextHop{VTEP: netip.MustParseAddr(h), VNI: 1001})
		}
		rows[k] = intent.Route{Key: k, Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(list...)}
		p.tables.Pipeline.Update(func() { tables.Of(p.tables, intent.KernelRoutes).Set(maps.Clone(rows)) })
	}
	add("10.20.0.0/24", "192.0.2.1")
	add("fd00:20::/64", "192.0.2.1", "192.0.2.2")
	got := p.oneWay()
	if len(got) != 1 || got[0].Key != "net.ipv6.fib_multipath_hash_policy" || got[0].State != status.Warning || got[0].Reason != "hash-policy" {
		t.Errorf("IPv6 has a choice: %+v", got)
	}
	add("10.20.0.0/24", "192.0.2.1", "192.0.2.2")
	if got := p.oneWay(); len(got) != 2 || got[0].Key != "net.ipv4.fib_multipath_hash_policy" {
		t.Errorf("both have a choice: %+v", got)
	}
	failure = errors.New("no /proc")
	if got := p.oneWay(); len(got) != 0 {
		t.Errorf("it cannot be read: %+v", got)
	}
	answer, failure = true, nil
	if got := p.oneWay(); len(got) != 0 {
		t.Errorf("ports count: %+v", got)
	}
}
