package bgp

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// frr is FRR's bgpd as a plain process with a directory of its own.
type frr struct {
	t    testing.TB
	dir  string
	port uint16
	cmd  *exec.Cmd
}

// startFRR listens on addrs with the given lines in "router bgp".
func startFRR(t testing.TB, asn uint32, addrs []string, lines ...string) *frr {
	t.Helper()
	return startFRRIn(t, "", freePort(t, addrs[0]), asn, addrs, lines...)
}

// startFRRIn does so in a named network namespace; "" is the test's own.
func startFRRIn(t testing.TB, ns string, port uint16, asn uint32, addrs []string, lines ...string) *frr {
	t.Helper()
	// FRR's own log of its files wants a short path: vty socket names are limited.
	dir, err := os.MkdirTemp("", "frr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := &frr{t: t, dir: dir, port: port}
	conf := fmt.Sprintf("log file %s/bgpd.log\nrouter bgp %d\n bgp router-id 192.0.2.255\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n bgp graceful-restart\n%s\n",
		dir, asn, strings.Join(lines, "\n"))
	if err := os.WriteFile(filepath.Join(dir, "bgpd.conf"), []byte(conf), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := commandIn(ns, "/usr/lib/frr/bgpd", "--skip_runas", "-Z", "-f", dir+"/bgpd.conf", "-i", dir+"/pid", "--vty_socket", dir,
		"-P", "0", "-p", fmt.Sprint(f.port), "-S")
	for _, a := range addrs {
		cmd.Args = append(cmd.Args, "-l", a)
	}
	log := &testLog{t: t}
	cmd.Stdout, cmd.Stderr = log, log
	f.cmd = cmd
	if err := cmd.Start(); err != nil {
		t.Fatalf("start FRR's bgpd (package frr): %v", err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b, _ := os.ReadFile(filepath.Join(dir, "bgpd.log"))
			t.Logf("bgpd.log:\n%s\nroutes: %s", b, f.raw())
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.close()
	})
	eventually(t, "bgpd listens", func() bool {
		_, err := os.Stat(filepath.Join(dir, "bgpd.vty"))
		return err == nil
	})
	return f
}

func freePort(t testing.TB, addr string) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(addr, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort().Port()
}

// neighbor is the usual configuration of a speaker at FRR.
func neighbor(addr string, asn uint32, more ...string) string {
	return connecting(addr, asn, append([]string{"passive"}, more...)...)
}

// connecting is a neighbour that FRR itself connects to, once a second.
func connecting(addr string, asn uint32, more ...string) string {
	lines := []string{fmt.Sprintf(" neighbor %s remote-as %d", addr, asn), fmt.Sprintf(" neighbor %s timers connect 1", addr)}
	for _, m := range more {
		if !strings.HasPrefix(m, "af:") {
			lines = append(lines, " neighbor "+addr+" "+m)
		}
	}
	lines = append(lines, " address-family l2vpn evpn", "  neighbor "+addr+" activate")
	for _, m := range more {
		if af, ok := strings.CutPrefix(m, "af:"); ok {
			lines = append(lines, "  neighbor "+addr+" "+af)
		}
	}
	return strings.Join(append(lines, " exit-address-family"), "\n")
}

const client = "af:route-reflector-client"

func (f *frr) vtysh(command string) []byte {
	f.t.Helper()
	out, err := exec.Command("vtysh", "--vty_socket", f.dir, "-d", "bgpd", "-c", command).CombinedOutput()
	if err != nil {
		f.t.Logf("vtysh %s: %v\n%s", command, err, out)
		return nil
	}
	return out
}

// frrRoute is one prefix of "show bgp l2vpn evpn route detail json", as far as
// the tests look.
type frrRoute struct {
	IP        string      `json:"ip"`
	IPLen     int         `json:"ipLen"`
	RouteType int         `json:"routeType"`
	EthTag    int         `json:"ethTag"`
	Paths     [][]frrPath `json:"paths"`
}

type frrPath struct {
	Valid             bool   `json:"valid"`
	Stale             bool   `json:"stale"`
	VNI               string `json:"vni"`
	LocalPref         uint32 `json:"locPrf"`
	ExtendedCommunity struct {
		String string `json:"string"`
	} `json:"extendedCommunity"`
	Nexthops []struct {
		IP string `json:"ip"`
	} `json:"nexthops"`
	Aspath struct {
		String string `json:"string"`
	} `json:"aspath"`
	tag int
}

// raw is FRR's table of Type-5 routes, in detail.
func (f *frr) raw() string { return string(f.vtysh("show bgp l2vpn evpn route detail json")) }

// routes lists the Type-5 routes by "RD prefix", the first path of each.
func (f *frr) routes() map[string]frrPath {
	f.t.Helper()
	var byRD map[string]json.RawMessage
	out := map[string]frrPath{}
	if err := json.Unmarshal(f.vtysh("show bgp l2vpn evpn route detail json"), &byRD); err != nil {
		return out
	}
	for rd, raw := range byRD {
		var prefixes map[string]json.RawMessage
		if json.Unmarshal(raw, &prefixes) != nil {
			continue
		}
		for _, p := range prefixes {
			var r frrRoute
			if json.Unmarshal(p, &r) != nil || r.RouteType != 5 || len(r.Paths) == 0 {
				continue
			}
			path := r.Paths[0][0]
			path.tag = r.EthTag
			out[rd+" "+netip.PrefixFrom(netip.MustParseAddr(r.IP), r.IPLen).String()] = path
		}
	}
	return out
}

// kill ends bgpd as a crash does.
func (f *frr) kill() { _ = f.cmd.Process.Kill() }

// neighborFor is FRR as a speaker's neighbour.
func (f *frr) neighborFor(addr string, asn uint32, local string) Neighbor {
	n := Neighbor{Address: netip.MustParseAddr(addr), ASN: asn, Port: f.port, ConnectRetry: time.Second}
	if local != "" {
		n.LocalAddress = netip.MustParseAddr(local)
	}
	return n
}
