package kernel_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not in time: %s", what)
		}
	}
}

// A tenant sends to addresses of the node itself, with the device's own MAC as
// destination, and no program is attached: the packets come out of the tunnel
// and reach no socket. A control shows that the same packets do reach the socket
// of a device that is not fail-closed.
//
// The larger of a device's rp_filter and that of all counts. Loose mode, 2, asks
// whether any device leads to the source; without an address it refuses too.
func TestFailClosed(t *testing.T) {
	for _, filter := range []string{"0", "1", "2"} {
		t.Run("all.rp_filter="+filter, func(t *testing.T) { failClosed(t, filter) })
	}
}

func failClosed(t *testing.T, filter string) {
	node, peer := newHost(t, "n"), newHost(t, "p")
	node.run("ip link add u type veth peer name v netns /run/netns/" + peer.ns + `
		ip link set u up; ip addr add 192.0.2.1/24 dev u; ip addr add 2001:db8::1/64 dev u nodad
		ip route add default via 192.0.2.2; sysctl -qw net.ipv4.conf.all.rp_filter=` + filter + `
		ip addr add 10.99.0.1/32 dev lo; ip addr add 2001:db8:99::1/128 dev lo`)
	peer.run(`ip link set v up; ip addr add 192.0.2.2/24 dev v; ip addr add 2001:db8::2/64 dev v nodad
		ip link add vx type vxlan id 77 dstport 4789 remote 192.0.2.1 dev v nolearning
		ip link set vx up; ip addr add 10.10.0.5/24 dev vx; ip addr add 2001:db8:10::5/64 dev vx nodad
		ip neigh replace 10.10.0.1 lladdr fe:01:01:01:01:01 dev vx nud permanent
		ip -6 neigh replace 2001:db8:10::1 lladdr fe:01:01:01:01:01 dev vx nud permanent
		ip route add 10.99.0.1/32 via 10.10.0.1 dev vx; ip -6 route add 2001:db8:99::1/128 via 2001:db8:10::1 dev vx
		ip route add 203.0.113.0/24 dev vx`)
	if _, err := node.fabric(nothing).Ensure(context.Background()); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "got")
	listen := node.command("socat", "-u", "UDP6-RECV:5000,ipv6only=0", "OPEN:"+file+",creat,append")
	if err := listen.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listen.Process.Kill(); _ = listen.Wait() }()
	waitFor(t, "socket", func() bool { return strings.Contains(node.run("ss -lnu"), ":5000") })

	send := func() string {
		for _, to := range []string{"UDP4:10.99.0.1", "UDP6:[2001:db8:99::1]"} {
			peer.run("for i in 1 2 3; do echo tenant | socat -u - " + to + ":5000; done")
		}
		// A packet over the underlay comes after them and must arrive.
		peer.run("echo marker | socat -u - UDP4:192.0.2.1:5000")
		waitFor(t, "marker", func() bool { return strings.Contains(node.run("cat "+file), "marker") })
		return node.run("cat " + file)
	}
	if got := send(); strings.Contains(got, "tenant") {
		t.Fatalf("tenant packets reached the host: %q", got)
	}
	if n := strings.TrimSpace(node.run("awk '/sluice-vxlan:/ { print $3 }' /proc/net/dev")); n == "0" {
		t.Fatal("nothing came out of the tunnel, so nothing was tested")
	}
	node.run(`sysctl -qw net.ipv6.conf.sluice-vxlan.disable_ipv6=0
		ip addr add 10.10.0.1/24 dev sluice-vxlan; sysctl -qw net.ipv4.conf.sluice-vxlan.rp_filter=0; : > ` + file)
	if got := send(); !strings.Contains(got, "tenant") {
		t.Fatalf("the control reached no socket: %q", got)
	}
}
