package bgp

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// gobgpd is the stand-alone GoBGP of the distribution as a route reflector. It
// keeps EVPN routes through a graceful restart; FRR 8.4 does so for unicast and
// MPLS VPN only.
type gobgpd struct {
	t         testing.TB
	port, api uint16
	conf      string
	kill      func()
}

// gobgpdOptions are the restart time that it announces, in seconds, and lines of a
// client's graceful restart and of its address family.
type gobgpdOptions struct {
	restartTime     int
	restart, family string
}

func startGoBGPD(t testing.TB, asn uint32, clients ...string) *gobgpd {
	t.Helper()
	return startGoBGPDWith(t, asn, gobgpdOptions{restartTime: 120}, clients...)
}

// longLived are the lines of a client's graceful restart and of its address
// family that make gobgpd keep routes as RFC 9494 says.
const (
	longLived       = "long-lived-enabled = true\n"
	longLivedFamily = "[neighbors.afi-safis.long-lived-graceful-restart.config]\nenabled = true\nrestart-time = 3600\n"
)

func startGoBGPDWith(t testing.TB, asn uint32, o gobgpdOptions, clients ...string) *gobgpd {
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
restart-time = %d
%s[[neighbors.afi-safis]]
[neighbors.afi-safis.config]
afi-safi-name = "l2vpn-evpn"
[neighbors.afi-safis.mp-graceful-restart.config]
enabled = true
%s`, c, asn, o.restartTime, o.restart, o.family)
	}
	g.conf = filepath.Join(t.TempDir(), "gobgpd.toml")
	if err := os.WriteFile(g.conf, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	g.start()
	t.Cleanup(func() { g.kill() })
	return g
}

// start runs it, also anew.
func (g *gobgpd) start() {
	g.t.Helper()
	cmd := exec.Command("gobgpd", "-f", g.conf, "-t", "toml", "--api-hosts", fmt.Sprintf("127.0.0.1:%d", g.api))
	log := &testLog{t: g.t}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		g.t.Fatalf("start gobgpd (package gobgpd): %v", err)
	}
	g.kill = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.close()
	})
}

// announce has it originate a route of VNI 1001 with the VTEP 192.0.2.9.
func (g *gobgpd) announce(prefix string, more ...string) {
	g.t.Helper()
	args := append(strings.Fields(fmt.Sprintf("-p %d global rib add -a evpn prefix %s etag 0 label 1001 rd 192.0.2.9:1 rt 64512:1001 encap vxlan "+
		"router-mac 02:00:00:00:00:09 nexthop 192.0.2.9", g.api, prefix)), more...)
	eventually(g.t, "gobgpd takes a route", func() bool { return exec.Command("gobgp", args...).Run() == nil })
}

func (g *gobgpd) established(client string) bool {
	out, _ := exec.Command("gobgp", "-p", fmt.Sprint(g.api), "neighbor", client).CombinedOutput()
	return strings.Contains(string(out), "BGP state = ESTABLISHED")
}

func (g *gobgpd) neighborFor(asn uint32, local string) Neighbor {
	return Neighbor{Address: netip.MustParseAddr("127.0.0.1"), ASN: asn, Port: g.port, ConnectRetry: time.Second,
		LocalAddress: netip.MustParseAddr(local)}
}
