package rib

import (
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func key(n int) intent.RouteKey {
	return intent.NewHostKey(1001, netip.AddrFrom4([4]byte{10, 0, 0, byte(n)}))
}

func route(k intent.RouteKey, s Source) intent.Route {
	if s == OVN {
		return intent.Route{Key: k, Kind: intent.RouteLocal}
	}
	return intent.Route{Key: k, Kind: intent.RouteRemote}
}

func TestImportTakesThePlaceOfALocalRoute(t *testing.T) {
	r, k := New(), key(1)
	put, _ := r.Update(BGP, map[intent.RouteKey]intent.Route{k: route(k, BGP)}, nil)
	if put[k].Kind != intent.RouteRemote {
		t.Fatalf("import alone: %+v", put)
	}
	put, _ = r.Update(OVN, map[intent.RouteKey]intent.Route{k: route(k, OVN)}, nil)
	if put[k].Kind != intent.RouteLocal {
		t.Fatalf("local beside it: %+v", put)
	}
	if put, _ = r.Update(BGP, map[intent.RouteKey]intent.Route{k: route(k, BGP)}, nil); put[k].Kind != intent.RouteLocal {
		t.Fatalf("import again: %+v", put)
	}
	put, gone := r.Update(OVN, nil, []intent.RouteKey{k})
	if put[k].Kind != intent.RouteRemote || len(gone) != 0 {
		t.Fatalf("local gone: %+v %v", put, gone)
	}
	if put, gone = r.Update(BGP, nil, []intent.RouteKey{k}); len(put) != 0 || len(gone) != 1 {
		t.Fatalf("both gone: %+v %v", put, gone)
	}
}

// all is the joined table.
func (r *RIB) all() map[intent.RouteKey]intent.Route {
	out := map[intent.RouteKey]intent.Route{}
	for i := len(r.routes) - 1; i >= 0; i-- {
		for k, b := range r.routes[i] {
			out[k] = b.route(k)
		}
	}
	return out
}

// What the updates say, applied in order, is the joined table.
func TestUpdatesAddUp(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	r, table := New(), map[intent.RouteKey]intent.Route{}
	for range 5000 {
		s, k := Source(rnd.IntN(int(sources))), key(rnd.IntN(20))
		var put map[intent.RouteKey]intent.Route
		var gone []intent.RouteKey
		if rnd.IntN(2) == 0 {
			put, gone = r.Update(s, map[intent.RouteKey]intent.Route{k: route(k, s)}, nil)
		} else {
			put, gone = r.Update(s, nil, []intent.RouteKey{k, key(rnd.IntN(20))})
		}
		for _, k := range gone {
			delete(table, k)
		}
		maps.Copy(table, put)
		if !maps.Equal(table, r.all()) {
			t.Fatalf("%v\nwant %v", table, r.all())
		}
	}
}

// A route comes out as it went in, whatever is in it.
func TestRoutesAreKept(t *testing.T) {
	k := intent.NewHostKey(1001, netip.MustParseAddr("192.0.2.1"))
	for _, want := range []intent.Route{
		{Key: k, Kind: intent.RouteLocal, Gateway: intent.GatewayKey{Bridge: "br-ex", VLAN: 7, MAC: intent.MAC{2, 0, 0, 0, 0, 1}}, VIP: true},
		{Key: k, Kind: intent.RouteRemote, NextHops: intent.NewNextHopSet(intent.NextHop{VTEP: netip.MustParseAddr("192.0.2.9"), VNI: 5})},
	} {
		if put, _ := New().Update(OVN, map[intent.RouteKey]intent.Route{k: want}, nil); put[k] != want {
			t.Errorf("%+v, want %+v", put[k], want)
		}
	}
	if n := reflect.TypeFor[intent.Route]().NumField(); n != reflect.TypeFor[body]().NumField()+1 {
		t.Errorf("a route has %d fields, of which the key is not in a body", n)
	}
}
