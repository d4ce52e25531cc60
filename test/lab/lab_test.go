package lab_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

var evpn = labtest.NewShared(lab.EVPN(lab.EVPNParams{}))

func TestMain(m *testing.M) {
	code := labtest.Run(m, evpn)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// On one tenant network packets cross from chassis a2 to a1 over Geneve; the
// router answers too.
func TestTenantNetworkAcrossChassis(t *testing.T) {
	l := evpn.Lab(t)
	geneve, err := l.Capture(t.Context(), "a2", "encap", "udp port 6081")
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"10.10.0.1", "fd00:10::1", "10.10.0.12", "fd00:10::12"} {
		labtest.Ping(t, l, "a-red1", addr)
		labtest.Exec(t, l, "a-red1", "ping", "-n", "-c3", "-i0.1", "-W2", "-s", fmt.Sprint(lab.VMMTU-48), "-M", "do", addr)
	}
	packets, err := geneve.Stop()
	if err != nil {
		t.Fatal(err)
	}
	if len(packets) == 0 {
		t.Error("no Geneve packet left a2")
	}
}

// The end of a tunnel has one MAC address: a chassis keeps what is answered last.
func TestOneAnswerForTunnelEnds(t *testing.T) {
	l := evpn.Lab(t)
	to, err := l.Node("a1")
	if err != nil {
		t.Fatal(err)
	}
	answers, err := l.Capture(t.Context(), "a2", "encap", "arp[6:2] = 2 and ether dst not ff:ff:ff:ff:ff:ff")
	if err != nil {
		t.Fatal(err)
	}
	labtest.Exec(t, l, "a2", "sh", "-ec", "ip neigh flush dev br-phy; ping -n -c3 -i0.2 -W2 "+to.Encap.String())
	packets, err := answers.Stop()
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]bool{}
	for _, p := range packets {
		sources[fmt.Sprintf("%x", p.Data[6:12])] = true
	}
	if len(sources) != 1 {
		t.Errorf("%s is answered for by %v", to.Encap, sources)
	}
}

func TestTCPAcrossChassis(t *testing.T) {
	l := evpn.Lab(t)
	for _, c := range []struct{ family, addr string }{{"4", "10.10.0.12"}, {"6", "[fd00:10::12]"}} {
		server, err := l.Command(t.Context(), "a-red2", "socat", "-u", "TCP"+c.family+"-LISTEN:5000,reuseaddr", "STDOUT")
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		server.Stdout = &got
		if err := server.Start(); err != nil {
			t.Fatal(err)
		}
		const size = 4 << 20
		labtest.Eventually(t, l, "a TCP connection", func() error {
			_, err := l.Exec(t.Context(), "a-red1", "sh", "-c", fmt.Sprintf("head -c %d /dev/zero | socat -u STDIN TCP%s:%s:5000", size, c.family, c.addr))
			return err
		})
		if err := server.Wait(); err != nil {
			t.Fatal(err)
		}
		if got.Len() != size {
			t.Errorf("IPv%s: %d of %d bytes arrived", c.family, got.Len(), size)
		}
	}
}

// Red and blue use the same addresses in cloud A: what red sends never shows at
// blue, and an address that only red has does not answer blue.
func TestTenantsAreApart(t *testing.T) {
	l := evpn.Lab(t)
	labtest.Ping(t, l, "a-red2", "10.10.0.11")
	atBlue, err := l.Capture(t.Context(), "a-blue1", "eth0", "icmp or icmp6[0] == 128 or icmp6[0] == 129")
	if err != nil {
		t.Fatal(err)
	}
	blueMAC := macOfVM(t, l, "a-blue1")
	atRed, err := l.Capture(t.Context(), "a-red2", "eth0", "ether host "+blueMAC)
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range []string{"10.10.0.11", "fd00:10::11"} {
		labtest.Exec(t, l, "a-red2", "ping", "-n", "-c5", "-i0.05", "-W2", addr)
	}
	foreign, err := atBlue.Stop()
	if err != nil || len(foreign) > 0 {
		t.Errorf("blue saw %d packets of red (%v)", len(foreign), err)
	}
	for _, addr := range []string{"10.10.0.12", "fd00:10::12"} {
		if out, err := l.Exec(t.Context(), "a-blue1", "ping", "-n", "-c3", "-i0.05", "-W1", addr); err == nil {
			t.Errorf("blue was answered by %s, which only red has: %s", addr, out)
		}
	}
	foreign, err = atRed.Stop()
	if err != nil || len(foreign) > 0 {
		t.Errorf("red saw %d packets of blue (%v)", len(foreign), err)
	}
}

// What a VM sends to the other cloud's subnet leaves on the provider bridge of
// the gateway chassis as frames to the next hop, once somebody answers for it.
func TestPacketsLeaveToTheNextHop(t *testing.T) {
	l := evpn.Lab(t)
	// An internal port with the next hop's addresses stands for the responder.
	labtest.Exec(t, l, "a1", "ovs-vsctl", "add-port", "br-ex", "probe", "--", "set", "Interface", "probe", "type=internal")
	t.Cleanup(func() {
		if _, err := l.Exec(context.Background(), "a1", "ovs-vsctl", "del-port", "br-ex", "probe"); err != nil {
			t.Error(err)
		}
	})
	labtest.Exec(t, l, "a1", "sh", "-ec", "ip addr add 172.24.0.1/16 dev probe; ip addr add 2001:db8:24::1/64 dev probe nodad; ip link set probe up")
	mac := strings.TrimSpace(labtest.Exec(t, l, "a1", "sh", "-c", `ip -br link show probe | awk '{print $3}'`))
	gateway := strings.Trim(strings.TrimSpace(mustNB(t, l, "a", "get", "Logical_Router_Port", lab.GatewayPort("red"), "mac")), `"`)
	for _, c := range []struct{ dst, filter string }{{"10.20.0.11", "icmp"}, {"fd00:20::11", "icmp6[0] == 128"}} {
		capture, err := l.Capture(t.Context(), "a1", "probe", c.filter+" and dst host "+c.dst)
		if err != nil {
			t.Fatal(err)
		}
		labtest.Eventually(t, l, "frames to "+c.dst, func() error {
			_, _ = l.Exec(t.Context(), "a-red1", "ping", "-n", "-c1", "-W1", c.dst)
			if n, err := capture.Count(); err != nil || n == 0 {
				return fmt.Errorf("%d frames: %w", n, errNone)
			}
			return nil
		})
		packets, err := capture.Stop()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packets {
			if got := addrs(p.Data); got != mac+" from "+gateway {
				t.Errorf("to %s: a frame to %s; want %s from %s", c.dst, got, mac, gateway)
			}
		}
	}
}

var errNone = fmt.Errorf("none yet")

func addrs(frame []byte) string {
	return net.HardwareAddr(frame[:6]).String() + " from " + net.HardwareAddr(frame[6:12]).String()
}

func mustNB(t *testing.T, l *lab.Lab, cloud string, args ...string) string {
	t.Helper()
	out, err := l.NB(t.Context(), cloud, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func macOfVM(t *testing.T, l *lab.Lab, vm string) string {
	t.Helper()
	b := strings.TrimSpace(labtest.Exec(t, l, vm, "sh", "-c", `ip -br link show eth0 | awk '{print $3}'`))
	if _, err := hex.DecodeString(strings.ReplaceAll(b, ":", "")); err != nil {
		t.Fatal(err)
	}
	return b
}
