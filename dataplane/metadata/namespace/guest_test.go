package namespace_test

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// guest is a VM on the integration bridge, which switches by itself here: what it
// sends has its checksums, as of a machine of vhost-user.
func (n *node) guest() {
	n.t.Helper()
	n.host(strings.NewReplacer("NODE", n.ns, "GUEST", n.ns+"-guest").Replace(`
		ip netns add GUEST; ip -n NODE link add guest type veth peer name eth0 netns GUEST
		ip -n NODE link set guest up; ip -n GUEST addr add 10.0.0.5/24 dev eth0
		ip -n GUEST link set eth0 address fa:16:3e:00:00:05 up mtu 1442; ip -n GUEST route add 169.254.169.254 via 10.0.0.2
		ip netns exec GUEST ethtool -K eth0 tx off`))
	n.run("ovs-vsctl add-port br-int guest")
}

// listen answers with a word in the network's namespace.
func (n *node) listen(family, at, word string, control func(fd int) error) net.Listener {
	n.t.Helper()
	c := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		return errors.Join(c.Control(func(fd uintptr) { err = control(int(fd)) }), err)
	}}
	var l net.Listener
	err := netns.At(n.names.Path(red)).Do(func() (err error) {
		l, err = c.Listen(context.Background(), family, at)
		return err
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return n.serve(l, word)
}

// serve answers with a word.
func (n *node) serve(l net.Listener, word string) net.Listener {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, word)
			_ = c.Close()
		}
	}()
	n.t.Cleanup(func() { _ = l.Close(); <-done })
	return l
}

// ask is one request of the guest.
func (n *node) ask(family, at string) (answer string) {
	err := netns.Named(n.ns + "-guest").Do(func() error {
		c, err := net.DialTimeout(family, at, 5*time.Second)
		if err != nil {
			return err
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(20 * time.Second))
		all, err := io.ReadAll(c)
		answer = string(all)
		return err
	})
	if err != nil {
		return err.Error()
	}
	return answer
}

// listen6 listens by IPv6, and returns where the guest asks. Devices have their numbers, as
// package net remembers names of other namespaces.
func (n *node) listen6(word string) (at string) {
	n.t.Helper()
	index := func(where, device string) string {
		return strings.TrimSpace(n.in(where, "ip -o link show "+device+" | cut -d: -f1"))
	}
	n.listen("tcp6", "[fe80::a9fe:a9fe%"+index(n.names.Path(red), "tap2f0d7ac1-01")+"]:80", word, func(int) error { return nil })
	return "[fe80::a9fe:a9fe%" + index("/run/netns/"+n.ns+"-guest", "eth0") + "]:80"
}

// A guest that the namespace knows is answered where nothing lets it say who it is: OVN
// 23.03 drops the neighbour advertisements of ports with port security.
func TestKnownGuest(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	n.guest()
	d := n.networks()
	unknown := network(red, func(v *intent.MetadataNetwork) { v.Neighbours = "" })
	n.apply(d, tableOf(unknown))
	n.listen("tcp4", "169.254.169.254:80", "word", func(int) error { return nil })
	six := n.listen6("word")
	for _, what := range []string{"arp,arp_op=2", "icmp6,icmp_type=136"} {
		n.run("ovs-ofctl add-flow unix:" + filepath.Join(n.dir, "br-int.mgmt") + " priority=9,in_port=guest," + what + ",actions=drop")
	}
	// What it asks for itself would tell, too.
	n.in("/run/netns/"+n.ns+"-guest", `
		ip neigh replace 10.0.0.2 lladdr fa:16:3e:01:02:03 dev eth0; ip neigh replace fe80::a9fe:a9fe lladdr fa:16:3e:01:02:03 dev eth0`)
	for family, at := range map[string]string{"tcp4": "169.254.169.254:80", "tcp6": six} {
		if got := n.ask(family, at); got == "word" {
			t.Errorf("%s: the control has an answer", family)
		}
	}
	n.apply(d, tableOf(network(red)))
	n.until("an answer", func() bool { return n.ask("tcp4", "169.254.169.254:80") == "word" })
	n.until("an answer by IPv6", func() bool { return n.ask("tcp6", six) == "word" })
}

// On the userspace datapath nobody fills in checksums, so the namespace does, for both
// families, and of answers of many packets too. Without it no connection comes about.
func TestChecksums(t *testing.T) {
	n := newNode(t)
	n.withSwitch()
	n.guest()
	d := n.networks()
	v := network(red)
	n.apply(d, tableOf(v))
	long := strings.Repeat("metadata", 50_000)
	n.listen("tcp4", "169.254.169.254:80", long, func(int) error { return nil })
	six := n.listen6(long)
	n.until("the first answer", func() bool { return n.ask("tcp4", "169.254.169.254:80") == long })
	n.until("the first answer by IPv6", func() bool { return n.ask("tcp6", six) == long })
	n.apply(d, tableOf(network(red, func(v *intent.MetadataNetwork) { v.Userspace = false })))
	for family, at := range map[string]string{"tcp4": "169.254.169.254:80", "tcp6": six} {
		if got := n.ask(family, at); got == long {
			t.Errorf("%s: the control has an answer", family)
		}
	}
}
