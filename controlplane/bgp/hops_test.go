package bgp

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// commandIn runs a program in a named network namespace; "" is the test's own.
func commandIn(ns, name string, args ...string) *exec.Cmd {
	if ns == "" {
		return exec.Command(name, args...)
	}
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + ns, name}, args...)...)
}

// chain is three namespaces in a row: the node's, a router's and the
// neighbour's. What the router forwards has a lower TTL, as on a real path.
type chain struct {
	t               testing.TB
	node, mid, peer string
}

const (
	nodeAddr4, nodeAddr6 = "198.51.100.1", "2001:db8:51::1"
	peerAddr4, peerAddr6 = "203.0.113.1", "2001:db8:113::1"
)

// chains counts those made so far, for names of their own.
var chains atomic.Int32

func newChain(t testing.TB) *chain {
	t.Helper()
	number := chains.Add(1)
	name := func(s string) string { return fmt.Sprintf("sluice-bgp-%s%d-%d", s, os.Getpid(), number) }
	c := &chain{t, name("n"), name("m"), name("p")}
	for _, ns := range []string{c.node, c.mid, c.peer} {
		c.ip("netns add " + ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	}
	for _, line := range []string{
		"-n MID link add node type veth peer name eth0 netns NODE", "-n MID link add peer type veth peer name eth0 netns PEER",
		"-n NODE addr add 198.51.100.1/24 dev eth0", "-n NODE addr add 2001:db8:51::1/64 dev eth0 nodad",
		"-n MID addr add 198.51.100.254/24 dev node", "-n MID addr add 2001:db8:51::fe/64 dev node nodad",
		"-n MID addr add 203.0.113.254/24 dev peer", "-n MID addr add 2001:db8:113::fe/64 dev peer nodad",
		"-n PEER addr add 203.0.113.1/24 dev eth0", "-n PEER addr add 2001:db8:113::1/64 dev eth0 nodad",
		"-n NODE link set lo up", "-n MID link set lo up", "-n PEER link set lo up",
		"-n NODE link set eth0 up", "-n MID link set node up", "-n MID link set peer up", "-n PEER link set eth0 up",
		"-n NODE route add default via 198.51.100.254", "-n NODE -6 route add default via 2001:db8:51::fe",
		"-n PEER route add default via 203.0.113.254", "-n PEER -6 route add default via 2001:db8:113::fe",
	} {
		c.ip(strings.NewReplacer("NODE", c.node, "MID", c.mid, "PEER", c.peer).Replace(line))
	}
	c.run(c.mid, "sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
	return c
}

func (c *chain) ip(line string) { c.t.Helper(); c.run("", "ip", strings.Fields(line)...) }

func (c *chain) run(ns, name string, args ...string) string {
	c.t.Helper()
	out, err := commandIn(ns, name, args...).CombinedOutput()
	if err != nil {
		c.t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// counter reads a counter of the kernel's TCP in a namespace (/proc/net/netstat).
func (c *chain) counter(ns, name string) string {
	c.t.Helper()
	// The file shows the namespace of the thread that opens it.
	lines := strings.Split(c.run(ns, "cat", "/proc/net/netstat"), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		for j := range names {
			if names[j] == name && j < len(values) {
				return values[j]
			}
		}
	}
	c.t.Fatalf("the kernel has no counter %s", name)
	return ""
}

// frr starts FRR as AS asn at the far end, where it listens on both families.
func (c *chain) frr(asn uint32, lines ...string) *frr {
	c.t.Helper()
	return startFRRIn(c.t, c.peer, 179, asn, []string{peerAddr4, peerAddr6}, lines...)
}

// speaker starts node 1 of AS 64512 with a neighbour, an address of the far end.
func (c *chain) speaker(peer string, asn uint32, change func(*Config, *Neighbor)) *speaker {
	c.t.Helper()
	n := Neighbor{Address: netip.MustParseAddr(peer), ASN: asn, ConnectRetry: time.Second}
	cfg := nodeConfig(1)
	if change != nil {
		change(&cfg, &n)
	}
	cfg.Neighbors = []Neighbor{n}
	return startSpeakerIn(c.t, c.node, cfg)
}

func (s *speaker) neighbor() NeighborStatus {
	s.t.Helper()
	return s.do(childCommand{Status: true}).Status.Neighbors[0]
}

func (s *speaker) established() bool { return s.neighbor().State == stateEstablished }

// families are the two ends of a session over each address family.
var families = []struct{ name, node, peer string }{
	{"IPv4", nodeAddr4, peerAddr4}, {"IPv6", nodeAddr6, peerAddr6},
}
