package bfd

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ovn-sluice/sluice/test/frrtest"
)

// commandIn runs a program in a named network namespace; "" is the test's own.
func commandIn(ns, name string, args ...string) *exec.Cmd {
	if ns == "" {
		return exec.Command(name, args...)
	}
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + ns, name}, args...)...)
}

// chain is three namespaces in a row: the node's, a router's, which is its
// single-hop neighbour, and that of the neighbour behind it.
type chain struct {
	t               testing.TB
	node, mid, peer string
	late            *child // the neighbour of startLate
}

const (
	node4, node6, nodeLink = "198.51.100.1", "2001:db8:51::1", "fe80::1"
	mid4, mid6, midLink    = "198.51.100.254", "2001:db8:51::fe", "fe80::fe"
	peer4, peer6           = "203.0.113.1", "2001:db8:113::1"
)

var chains atomic.Int32

func newChain(t testing.TB) *chain {
	t.Helper()
	number := chains.Add(1)
	name := func(s string) string { return fmt.Sprintf("sluice-bfd-%s%d-%d", s, os.Getpid(), number) }
	c := &chain{t: t, node: name("n"), mid: name("m"), peer: name("p")}
	for _, ns := range []string{c.node, c.mid, c.peer} {
		c.ip("netns add " + ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
		// Link-local addresses are given by hand, and addresses outlive a cut.
		c.run(ns, "sysctl", "-qw", "net.ipv6.conf.all.addr_gen_mode=1", "net.ipv6.conf.default.addr_gen_mode=1",
			"net.ipv6.conf.all.keep_addr_on_down=1", "net.ipv6.conf.default.keep_addr_on_down=1")
	}
	for _, line := range []string{
		"-n MID link add node type veth peer name eth0 netns NODE", "-n MID link add peer type veth peer name eth0 netns PEER",
		"-n NODE addr add 198.51.100.1/24 dev eth0", "-n NODE addr add 2001:db8:51::1/64 dev eth0 nodad", "-n NODE addr add fe80::1/64 dev eth0 nodad",
		"-n MID addr add 198.51.100.254/24 dev node", "-n MID addr add 2001:db8:51::fe/64 dev node nodad", "-n MID addr add fe80::fe/64 dev node nodad",
		"-n MID addr add 203.0.113.254/24 dev peer", "-n MID addr add 2001:db8:113::fe/64 dev peer nodad",
		"-n PEER addr add 203.0.113.1/24 dev eth0", "-n PEER addr add 2001:db8:113::1/64 dev eth0 nodad",
		// Neighbours of packets that are forwarded are solicited from a link-local address only.
		"-n MID addr add fe80::fe/64 dev peer nodad", "-n PEER addr add fe80::2/64 dev eth0 nodad",
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

// cut takes the node's cable out, mend puts it in again.
func (c *chain) cut() { c.t.Helper(); c.ip("-n " + c.mid + " link set node down") }

func (c *chain) mend() {
	c.t.Helper()
	c.ip("-n " + c.mid + " link set node up")
	c.ip("-n " + c.mid + " addr replace fe80::fe/64 dev node nodad") // link-local ones are not kept
}

// bfdd is FRR's zebra and bfdd.
type bfdd struct {
	t testing.TB
	*frrtest.Router
}

// startBFDD runs them with the given lines of "bfd".
func startBFDD(t testing.TB, ns string, lines ...string) *bfdd {
	t.Helper()
	return &bfdd{t, frrtest.Start(t, ns, frrtest.Daemon{Name: "zebra"},
		frrtest.Daemon{Name: "bfdd", Config: "bfd\n" + strings.Join(lines, "\n")})}
}

func (b *bfdd) kill() { _ = b.Command("bfdd").Process.Kill() }

// bfddPeer is one of "show bfd peers json", as far as the tests look.
type bfddPeer struct {
	Peer             string
	Multihop         bool
	Status           string
	Diagnostic       string
	RemoteDiagnostic string `json:"remote-diagnostic"`
	ID               uint32
	RemoteID         uint32 `json:"remote-id"`
	RemoteTx         int    `json:"remote-transmit-interval"`
	RemoteRx         int    `json:"remote-receive-interval"`
	RemoteMultiplier int    `json:"remote-detect-multiplier"`
}

func (b *bfdd) peers() []bfddPeer {
	b.t.Helper()
	out := b.VTY("bfdd", "show bfd peers json")
	var peers []bfddPeer
	if err := json.Unmarshal(out, &peers); err != nil {
		b.t.Logf("show bfd peers json: %v: %s", err, out)
	}
	return peers
}

// all tells whether every session has the status.
func (b *bfdd) all(status string) bool {
	b.t.Helper()
	peers := b.peers()
	for _, p := range peers {
		if p.Status != status {
			return false
		}
	}
	return len(peers) > 0
}
