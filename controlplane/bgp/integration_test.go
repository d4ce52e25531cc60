package bgp

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func key(vni intent.VNI, prefix string) intent.RouteKey {
	return intent.NewRouteKey(vni, netip.MustParsePrefix(prefix))
}

// nodeConfig is node i of AS 64512, with the VTEP 192.0.2.i.
func nodeConfig(i byte, neighbors ...Neighbor) Config {
	return Config{ASN: 64512, SystemID: string('a' + rune(i)), VTEP4: netip.AddrFrom4([4]byte{192, 0, 2, i}), Neighbors: neighbors}
}

var red = childPolicy{VNI: 1001, Index: 7, Export: []string{"64512:1001", "64512:5"}, Auto: true}

func TestRoutesThroughRouteReflector(t *testing.T) {
	rr := startFRR(t, 64512, "127.0.0.1", neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client))
	a := startSpeaker(t, nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")))
	b := startSpeaker(t, nodeConfig(2, rr.neighborFor("127.0.0.1", 64512, "127.0.0.12")))
	b.do(childCommand{Policies: []childPolicy{red}})
	a.do(childCommand{Policies: []childPolicy{red}})
	prefixes := []string{"10.10.0.5/32", "10.10.0.0/24", "0.0.0.0/0", "2001:db8:10::5/128", "2001:db8:10::/64", "::/0"}
	var keys []intent.RouteKey
	for _, p := range prefixes {
		keys = append(keys, key(1001, p))
	}
	a.do(childCommand{Set: keys})
	want := []childHop{{"192.0.2.1", 1001, RouterMAC("b").String()}}
	for _, k := range keys {
		eventually(t, "b imports "+k.String(), func() bool { return slices.Equal(b.hops(k), want) })
		eventually(t, "FRR shows "+k.String(), func() bool {
			p, ok := rr.routes()["192.0.2.1:7 "+k.Prefix.String()]
			return ok && p.Valid && p.VNI == "1001" && p.tag == 0 && p.Nexthops[0].IP == "192.0.2.1" &&
				p.ExtendedCommunity.String == "RT:64512:5 RT:64512:1001 ET:8 Rmac:"+RouterMAC("b").String()
		})
	}
	eventually(t, "both are in sync", func() bool { return a.synced() && b.synced() })
	a.do(childCommand{Deletes: keys[:1]})
	eventually(t, "the withdrawal arrives", func() bool { return b.hops(keys[0]) == nil && b.hops(keys[1]) != nil })
	a.do(childCommand{Set: []intent.RouteKey{}})
	eventually(t, "all is withdrawn", func() bool { return len(rr.routes()) == 0 })
	st := b.do(childCommand{Status: true}).Status
	if st.Imported != 0 || st.VTEPs != 1 || st.Neighbors[0].State != "established" || !st.Neighbors[0].EndOfRIB {
		t.Errorf("status %+v", st)
	}
}
