package lab_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// A physical gateway reaches the routers' gateway ports over the provider
// bridge, untagged and in a VLAN, on one bridge and on two.
func TestPhysicalGateway(t *testing.T) {
	for _, c := range []struct {
		name   string
		params lab.EVPNParams
		addrs  map[string][]string
	}{
		{"untagged", lab.EVPNParams{Uplink: lab.UplinkGateway, RemoteTCP: true},
			map[string][]string{"a-public-gw": {"172.24.0.11", "2001:db8:24::b", "172.24.0.12", "2001:db8:24::c"}}},
		{"vlan and two bridges", lab.EVPNParams{Uplink: lab.UplinkGateway, VLAN: 100, TwoBridges: true},
			map[string][]string{"a-public-gw": {"172.24.0.11", "2001:db8:24::b"}, "a-public2-gw": {"172.26.0.12", "2001:db8:26::c"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := lab.EVPN(c.params)
			s.Clouds = s.Clouds[:1]
			l := labtest.Up(t, s)
			for node, addrs := range c.addrs {
				for _, a := range addrs {
					labtest.Ping(t, l, node, a)
				}
			}
		})
	}
}

func TestManyTenantsWithPhantomHosts(t *testing.T) {
	s := lab.EVPN(lab.EVPNParams{ExtraTenants: 60, HostsPerTenant: 4})
	s.Clouds = s.Clouds[:1]
	l := labtest.Up(t, s)
	out, err := l.SB(t.Context(), "a", "--bare", "--columns=logical_port", "find", "Port_Binding", "type=chassisredirect", "chassis!=[]")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(strings.Fields(out)); got != 62 {
		t.Errorf("%d gateways are bound, want 62", got)
	}
	out, err = l.SB(t.Context(), "a", "--bare", "--columns=tag", "find", "Port_Binding", "type=localnet", "tag!=[]")
	if err != nil {
		t.Fatal(err)
	}
	if tags := strings.Fields(out); len(tags) != 2 || !slices.Contains(tags, "101") || !slices.Contains(tags, "102") {
		t.Errorf("provider networks have the tags %v, want 101 and 102", tags)
	}
	id, err := l.SB(t.Context(), "a", "--bare", "--columns=_uuid", "find", "Chassis", "name=a-phantom")
	if err != nil {
		t.Fatal(err)
	}
	out, err = l.SB(t.Context(), "a", "--bare", "--columns=logical_port", "find", "Port_Binding", "chassis="+strings.TrimSpace(id))
	if err != nil {
		t.Fatal(err)
	}
	if got := len(strings.Fields(out)); got != 240 {
		t.Errorf("%d hosts are bound to the phantom chassis, want 240", got)
	}
}

// Two peers exchange Type-5 routes through the reflector and forward between
// their VRFs, over an IPv4 and an IPv6 underlay; the VRFs stay apart.
func TestPeers(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		t.Run(fmt.Sprintf("underlay6=%v", v6), func(t *testing.T) {
			l := labtest.Up(t, lab.Scenario{
				Name: "peers", AS: lab.FabricAS, Reflectors: []string{"rr"},
				Peers: []lab.Peer{peer("p1", 30, v6), peer("p2", 31, v6)},
			})
			for _, p := range []string{"p1", "p2"} {
				labtest.Eventually(t, l, "routes at "+p, func() error {
					routes, err := l.PeerRoutes(t.Context(), p)
					if err == nil && len(routes) != 8 {
						err = fmt.Errorf("%d routes, want 8", len(routes))
					}
					return err
				})
				if err := l.PeerSync(t.Context(), p); err != nil {
					t.Fatal(err)
				}
			}
			if out := labtest.Exec(t, l, "rr", "vtysh", "-c", "show bgp l2vpn evpn"); !strings.Contains(out, "10.31.0.0") {
				t.Errorf("the reflector does not show 10.31.0.0/24:\n%s", out)
			}
			for _, a := range []string{"10.31.0.1", "fd00:31::1"} {
				labtest.Ping(t, l, "p1-1001", a)
				labtest.Ping(t, l, "p1-2001", a)
			}
			withdrawn(t, l)
		})
	}
}

// withdrawn takes one route of p2 back: p1 removes it from that VRF only.
func withdrawn(t *testing.T, l *lab.Lab) {
	t.Helper()
	gone := netip.MustParsePrefix("10.31.0.0/24")
	if err := l.PeerWithdraw(t.Context(), "p2", 1001, gone); err != nil {
		t.Fatal(err)
	}
	labtest.Eventually(t, l, "the withdrawal", func() error {
		routes, err := l.PeerRoutes(t.Context(), "p1")
		if err == nil && slices.ContainsFunc(routes, func(r lab.PeerRoute) bool { return r.Label == 1001 && r.Prefix == gone }) {
			err = fmt.Errorf("%s is still there", gone)
		}
		return err
	})
	if err := l.PeerSync(t.Context(), "p1"); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Exec(t.Context(), "p1-1001", "ping", "-n", "-c1", "-W1", "10.31.0.1"); err == nil {
		t.Error("the withdrawn route still forwards")
	}
	labtest.Ping(t, l, "p1-1001", "fd00:31::1")
	labtest.Ping(t, l, "p1-2001", "10.31.0.1")
}

func peer(name string, subnet int, v6 bool) lab.Peer {
	addrs := []netip.Prefix{
		netip.MustParsePrefix(fmt.Sprintf("10.%d.0.1/24", subnet)), netip.MustParsePrefix(fmt.Sprintf("fd00:%d::1/64", subnet)),
	}
	return lab.Peer{Name: name, Underlay6: v6, VRFs: []lab.PeerVRF{{VNI: 1001, Addrs: addrs}, {VNI: 2001, Addrs: addrs}}}
}
