package bgp

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// gobgpd is the stand-alone GoBGP of the distribution as a route reflector. It
// keeps EVPN routes through a graceful restart; FRR 8.4 does so for unicast and
// MPLS VPN only.
type gobgpd struct {
	t         testing.TB
	port, api uint16
}

func startGoBGPD(t testing.TB, asn uint32, clients ...string) *gobgpd {
	t.Helper()
	return startGoBGPDWith(t, asn, "", "", clients...)
}

// longLived are the lines of a client's graceful restart and of its address
// family that make gobgpd keep routes as RFC 9494 says.
const (
	longLived       = "long-lived-enabled = true\n"
	longLivedFamily = "[neighbors.afi-safis.long-lived-graceful-restart.config]\nenabled = true\nrestart-time = 3600\n"
)

func startGoBGPDWith(t testing.TB, asn uint32, restart, family string, clients ...string) *gobgpd {
	t.Helper()
	g := &gobgpd{t: t, port: freePort(t, "127.0.0.1"), api: freePort(t, "127.0.0.1")}
	var b strings.Builder
	fmt.Fprintf(&b, "[global.config]\nas = %d\nrouter-id = \"192.0.2.255\"\nport = %d\nlocal-address-list = [\"127.0.0.1\"]\n", asn, g.port)
	for _, c := range clients {
		fmt.Fprintf(&b, `[[neighbors]]
[neighbors.config]
neighbor-address = "%s"
peer-as = %d
[neighbors.transport.config]
passive-mode = true
[neighbors.route-reflector.config]
route-reflector-client = true
route-reflector-cluster-id = "192.0.2.255"
[neighbors.graceful-restart.config]
enabled = true
restart-time = 120
%s[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "l2vpn-evpn"
[neighbors.afi-safis.mp-graceful-restart.config]
enabled = true
%s`, c, asn, restart, family)
	}
	conf := filepath.Join(t.TempDir(), "gobgpd.toml")
	if err := os.WriteFile(conf, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gobgpd", "-f", conf, "-t", "toml", "--api-hosts", fmt.Sprintf("127.0.0.1:%d", g.api))
	log := &testLog{t: t}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start gobgpd (package gobgpd): %v", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.close()
	})
	return g
}

func (g *gobgpd) established(client string) bool {
	out, _ := exec.Command("gobgp", "-p", fmt.Sprint(g.api), "neighbor", client).CombinedOutput()
	return strings.Contains(string(out), "BGP state = ESTABLISHED")
}

func (g *gobgpd) neighborFor(asn uint32, local string) Neighbor {
	return Neighbor{Address: netip.MustParseAddr("127.0.0.1"), ASN: asn, Port: g.port, ConnectRetry: time.Second,
		LocalAddress: netip.MustParseAddr(local)}
}
