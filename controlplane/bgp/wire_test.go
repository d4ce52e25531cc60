package bgp

import (
	"encoding/hex"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/apiutil"
	gobgp "github.com/osrg/gobgp/v3/pkg/packet/bgp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func sample(prefix, hop string) type5 {
	return type5{
		routerID: netip.MustParseAddr("192.0.2.1"), index: 300, prefix: netip.MustParsePrefix(prefix), label: 0xabcdef,
		nextHop: netip.MustParseAddr(hop), routerMAC: intent.MAC{2, 0, 0, 0, 0, 1},
		targets: targets("64512:11259375", "192.0.2.9:5", "4200000000:7"),
	}
}

// TestEncode checks every byte against RFC 9136 section 3.1 and RFC 4271 section 4.3.
func TestEncode(t *testing.T) {
	for _, tt := range []struct {
		name, prefix, nlri string
	}{
		{"IPv4", "10.10.0.0/24", "05 22 0001c0000201012c 00000000000000000000 00000000 18 0a0a0000 00000000 abcdef"},
		{"IPv4 default", "0.0.0.0/0", "05 22 0001c0000201012c 00000000000000000000 00000000 00 00000000 00000000 abcdef"},
		{"IPv6 host", "2001:db8::1/128", "05 3a 0001c0000201012c 00000000000000000000 00000000 80 20010db8000000000000000000000001 00000000000000000000000000000000 abcdef"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := sample(tt.prefix, "192.0.2.1")
			want := strings.ReplaceAll(tt.nlri, " ", "")
			if got := hex.EncodeToString(encodeNLRI(s)); got != want {
				t.Errorf("NLRI\n got %s\nwant %s", got, want)
			}
			attrs := encodeAttributes(s)
			reach := []byte{0x90, 14, 0, byte(5 + 4 + len(want)/2), 0, 25, 70, 4, 192, 0, 2, 1, 0}
			wantAttrs := []string{
				"5001000100",
				hex.EncodeToString(reach) + want,
				"d0100028" + "0002fc0000abcdef" + "0102c00002090005" + "0202fa56ea000007" + "030c000000000008" + "0603020000000001",
				"5005000400000000",
			}
			for i, a := range attrs {
				if got := hex.EncodeToString(a); got != wantAttrs[i] {
					t.Errorf("attribute %d\n got %s\nwant %s", i, got, wantAttrs[i])
				}
			}
		})
	}
}

// received passes a path through GoBGP's own types, as a neighbour's route comes.
func received(t testing.TB, p *api.Path, source uint32) *api.Path {
	t.Helper()
	n, err := apiutil.GetNativeNlri(p)
	if err != nil {
		t.Fatal(err)
	}
	attrs, err := apiutil.GetNativePathAttributes(p)
	if err != nil {
		t.Fatal(err)
	}
	return asReported(n, attrs, source)
}

func asReported(n gobgp.AddrPrefixInterface, attrs []gobgp.PathAttributeInterface, source uint32) *api.Path {
	nlri, _ := apiutil.MarshalNLRI(n)
	pattrs, _ := apiutil.MarshalPathAttributes(attrs)
	return &api.Path{Nlri: nlri, Pattrs: pattrs, Family: evpnFamily(), SourceAsn: source, SourceId: "192.0.2.255", NeighborIp: "198.51.100.1"}
}

func TestDecodeIsTheInverseOfEncode(t *testing.T) {
	for _, prefix := range []string{"10.10.0.0/24", "10.10.0.5/32", "0.0.0.0/0", "2001:db8::/64", "2001:db8::1/128", "::/0"} {
		for _, hop := range []string{"192.0.2.1", "2001:db8:ffff::1"} {
			s := sample(prefix, hop)
			s.localPref = 107
			p, err := decodePath(received(t, encodePath(s, false), 64512), 64512)
			if err != nil {
				t.Fatal(err)
			}
			if p.prefix != s.prefix || p.hop != (intent.NextHop{VTEP: s.nextHop, VNI: s.label, RouterMAC: s.routerMAC}) ||
				intent.NewRouteTargets(p.targets...) != s.targets || p.key.rd != wireRD(s.routerID, s.index) {
				t.Errorf("%s via %s came back as %+v", prefix, hop, p)
			}
			if r := p.check(func(netip.Addr) bool { return false }); r != "" {
				t.Errorf("%s via %s is rejected: %s", prefix, hop, r)
			}
			if p.rank.localPref != s.localPref || p.rank.ebgp || p.rank.pathLen != 0 {
				t.Errorf("rank %+v", p.rank)
			}
		}
	}
}

func TestDecodeAttributes(t *testing.T) {
	p := received(t, encodePath(sample("10.0.0.0/8", "192.0.2.1"), false), 65001)
	p.Pattrs = append(p.Pattrs,
		pack(t, &api.AsPathAttribute{Segments: []*api.AsSegment{
			{Type: api.AsSegment_AS_CONFED_SEQUENCE, Numbers: []uint32{1, 2}},
			{Type: api.AsSegment_AS_SEQUENCE, Numbers: []uint32{65001, 65002}},
			{Type: api.AsSegment_AS_SET, Numbers: []uint32{5, 6, 7}},
		}}),
		pack(t, &api.LocalPrefAttribute{LocalPref: 200}),
		pack(t, &api.MultiExitDiscAttribute{Med: 9}),
		pack(t, &api.CommunitiesAttribute{Communities: []uint32{1, 0xffff0006}}),
		pack(t, &api.OriginAttribute{Origin: 2}),
	)
	got, err := decodePath(p, 64512)
	if err != nil {
		t.Fatal(err)
	}
	want := rank{localPref: 200, pathLen: 3, origin: 2, neighborAS: 65001, med: 9, ebgp: true, longStale: true, routerID: netip.MustParseAddr("192.0.2.255")}
	if !reflect.DeepEqual(got.rank, want) {
		t.Errorf("got %+v\nwant %+v", got.rank, want)
	}
}

func pack(t testing.TB, m proto.Message) *anypb.Any {
	t.Helper()
	a, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCheck(t *testing.T) {
	own := func(a netip.Addr) bool { return a == netip.MustParseAddr("192.0.2.100") }
	for _, tt := range []struct {
		want   Reason
		change func(*path)
	}{
		{"", func(*path) {}},
		{"", func(p *path) { p.prefix = netip.MustParsePrefix("128.0.0.0/1") }},
		{ReasonUnreadable, func(p *path) { p.unreadable = true }},
		{ReasonBadPrefix, func(p *path) { p.prefix = netip.Prefix{} }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("127.0.0.0/8") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("239.1.0.0/16") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("169.254.169.254/32") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("0.0.0.0/32") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("::/128") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("::1/128") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("fe80::/64") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("ff05::/16") }},
		{ReasonMartian, func(p *path) { p.prefix = netip.MustParsePrefix("::ffff:10.0.0.0/104") }},
		{ReasonESI, func(p *path) { p.esi = true }},
		{ReasonGateway, func(p *path) { p.gateway = true }},
		{ReasonEncap, func(p *path) { p.otherEncap = true }},
		{ReasonNoVNI, func(p *path) { p.hop.VNI = 0 }},
		{ReasonOwn, func(p *path) { p.hop.VTEP = netip.MustParseAddr("192.0.2.100") }},
		{ReasonBadNextHop, func(p *path) { p.hop.VTEP = netip.Addr{} }},
		{ReasonBadNextHop, func(p *path) { p.hop.VTEP = netip.MustParseAddr("127.0.0.1") }},
		{ReasonBadNextHop, func(p *path) { p.hop.VTEP = netip.MustParseAddr("0.0.0.0") }},
		{ReasonBadNextHop, func(p *path) { p.hop.VTEP = netip.MustParseAddr("224.0.0.5") }},
		{ReasonBadNextHop, func(p *path) { p.hop.VTEP = netip.MustParseAddr("fe80::1") }},
		{ReasonNoRouterMAC, func(p *path) { p.hasMAC = false }},
		{ReasonBadRouterMAC, func(p *path) { p.hop.RouterMAC = intent.MAC{} }},
		{ReasonBadRouterMAC, func(p *path) { p.hop.RouterMAC[0] = 1 }},
	} {
		p := testPath("10.0.0.0/8", "192.0.2.1")
		tt.change(p)
		if got := p.check(own); got != tt.want {
			t.Errorf("%+v: got %q, want %q", p, got, tt.want)
		}
	}
}

func testPath(prefix, hop string, rts ...string) *path {
	p := &path{prefix: netip.MustParsePrefix(prefix), hasMAC: true,
		hop:  intent.NextHop{VTEP: netip.MustParseAddr(hop), VNI: 1001, RouterMAC: intent.MAC{2, 0, 0, 0, 0, 9}},
		rank: rank{localPref: 100}, targets: targets(rts...).All()}
	p.key = pathKey{neighbor: netip.MustParseAddr("198.51.100.1"), addr: p.prefix.Addr(), bits: uint8(p.prefix.Bits())}
	if p.hop.VTEP.Is4() {
		p.key.rd = wireRD(p.hop.VTEP, 1)
	}
	return p
}

// FuzzDecode feeds wire bytes through GoBGP's parser into ours: what we make of
// a route never panics, and what passes check is safe to program.
func FuzzDecode(f *testing.F) {
	for _, s := range []type5{sample("10.10.0.0/24", "192.0.2.1"), sample("::/0", "2001:db8::1")} {
		attrs := encodeAttributes(s)
		f.Add(encodeNLRI(s), attrs[1], attrs[2])
	}
	f.Fuzz(func(t *testing.T, nlri, reach, comms []byte) {
		n, attrs, ok := parse(nlri, reach, comms)
		if !ok {
			return
		}
		p, err := decodePath(asReported(n, attrs, 65001), 64512)
		if err != nil {
			return
		}
		r := newRIB(func(netip.Addr) bool { return false }, 0, 0)
		r.setPolicies(map[intent.VNI]intent.VRFPolicy{1: {VNI: 1, Index: 1, AutoImport: true, Import: intent.NewRouteTargets(p.targets...)}})
		r.apply(p, epoch)
		keys, vteps := r.settle(epoch)
		if p.reason != "" && len(keys)+len(vteps) > 0 {
			t.Fatalf("rejected for %s and still used: %v %v", p.reason, keys, vteps)
		}
		for _, k := range keys {
			if k != intent.NewRouteKey(k.VNI, k.Prefix) {
				t.Fatalf("%v is not canonical", k)
			}
			for _, h := range r.routes[k.VNI][k.Prefix].All() {
				if h.VNI == 0 || h.VNI > intent.MaxVNI || h.RouterMAC.IsZero() || h.RouterMAC[0]&1 != 0 || h.VTEP.IsMulticast() || h.VTEP.IsLoopback() || h.VTEP.Is4In6() {
					t.Fatalf("unsafe next hop %v", h)
				}
			}
		}
	})
}

// parse is GoBGP's parser; a panic in it is GoBGP's (doc.go, Limits).
func parse(nlri, reach, comms []byte) (n gobgp.AddrPrefixInterface, attrs []gobgp.PathAttributeInterface, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	p := &api.Path{Family: evpnFamily(), NlriBinary: nlri, PattrsBinary: [][]byte{reach, comms}}
	n, err := apiutil.GetNativeNlri(p)
	if err != nil {
		return nil, nil, false
	}
	attrs, err = apiutil.GetNativePathAttributes(p)
	return n, attrs, err == nil
}
