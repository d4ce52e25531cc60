package lab

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name, want string
		change     func(*Scenario)
	}{
		{"as it is", "", func(*Scenario) {}},
		{"two nodes of one name", `"a1" is used twice`, func(s *Scenario) { s.Reflectors = append(s.Reflectors, "a1") }},
		{"reserved name", `"fabric" is used twice`, func(s *Scenario) { s.Reflectors = append(s.Reflectors, "fabric") }},
		{"bad name", "lower case", func(s *Scenario) { s.Clouds[0].Chassis[0].Name = "A_1" }},
		{"unknown chassis", `no chassis "a9"`, func(s *Scenario) { s.Clouds[0].VMs[0].Chassis = "a9" }},
		{"unknown network", `no network "x" of tenant "red"`, func(s *Scenario) { s.Clouds[0].VMs[0].Network = "x" }},
		{"unknown provider", `no provider network "x"`, func(s *Scenario) { s.Clouds[0].Tenants[0].Provider = "x" }},
		{"role without certificates", "RBAC needs TLS", func(s *Scenario) { s.Clouds[0].Central.RBAC = true }},
		{"too large a cluster", "10 database members", func(s *Scenario) { s.Clouds[0].Central.Members = 10 }},
		{"a member's name is taken", `"a-central2" is used twice`, func(s *Scenario) {
			s.Clouds[0].Central.Members = 3
			s.Reflectors = append(s.Reflectors, "a-central2")
		}},
		{"unknown uplink", "want port, gateway or nothing", func(s *Scenario) { s.Clouds[0].Providers[0].Uplink = "x" }},
		{"a host with its router's address", "the router's own", func(s *Scenario) {
			s.Peers = []Peer{{Name: "p1", FRR: true, VRFs: []PeerVRF{{VNI: 1, Addrs: []netip.Prefix{netip.MustParsePrefix("fd00:9::1/64")}}}}}
		}},
		{"FRR over IPv6", "no VTEPs of IPv6", func(s *Scenario) { s.Peers = []Peer{{Name: "p1", FRR: true, Underlay6: true}} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := EVPN(EVPNParams{})
			c.change(&s)
			err := s.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestGatewayAddrs(t *testing.T) {
	p := Provider{Subnet4: netip.MustParsePrefix("172.24.0.0/16"), Subnet6: netip.MustParsePrefix("2001:db8::/64")}
	for _, c := range []struct {
		index  int
		v4, v6 string
	}{{0, "172.24.0.11", "2001:db8::b"}, {244, "172.24.0.255", "2001:db8::ff"}, {245, "172.24.1.0", "2001:db8::100"}, {1001, "172.24.3.244", "2001:db8::3f4"}} {
		v4, v6 := p.GatewayAddrs(c.index)
		if v4.String() != c.v4 || v6.String() != c.v6 {
			t.Errorf("%d: got %s and %s, want %s and %s", c.index, v4, v6, c.v4, c.v6)
		}
	}
}

func TestNodesHaveTheirOwnAddresses(t *testing.T) {
	seen := map[netip.Addr]string{}
	central := Central{Members: 3, Relay: true}
	for _, n := range nodesOf(EVPN(EVPNParams{Uplink: UplinkGateway, CentralA: central, CentralB: central}), "x", "/run/x") {
		for _, a := range []netip.Addr{n.VTEP4, n.VTEP6, n.Encap} {
			if other := seen[a]; a.IsValid() && other != "" {
				t.Errorf("%s has %s of %s", n.Name, a, other)
			}
			seen[a] = n.Name
		}
	}
}

// Who talks while a chassis dies is on networks that the other cloud can reach, in the
// scenario of the demo, too.
func TestTalks(t *testing.T) {
	s := EVPN(EVPNParams{Compute: true, Metadata: true})
	got := s.talks(s.Clouds[0], "a1")
	want := []talk{
		{"b-red1", "10.10.0.11"}, {"b-red1", "fd00:10::11"}, {"b-red1", "10.10.0.13"}, {"b-red1", "fd00:10::13"},
		{"b-blue1", "10.10.0.11"}, {"b-blue1", "fd00:10::11"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// All that is missing is named before anything is started.
func TestRequire(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := Require(EVPN(EVPNParams{}))
	if err == nil {
		t.Fatal("nothing is missing")
	}
	tools, packages, _ := strings.Cut(err.Error(), "apt-get install ")
	for _, want := range []string{"ip", "ping", "socat", "curl", "ovn-sbctl", "ovs-ofctl", "ovsdb-client"} {
		if !slices.Contains(strings.FieldsFunc(tools, func(r rune) bool { return r == ' ' || r == ',' || r == ';' }), want) {
			t.Errorf("%s is not named: %v", want, err)
		}
	}
	for _, want := range []string{"socat", "curl", "ovn-common", "openvswitch-common"} {
		if !slices.Contains(strings.Fields(packages), want) {
			t.Errorf("package %s is not named: %v", want, err)
		}
	}
}
