package bpf_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// connection is one of TCP.
type connection struct {
	t           *testing.T
	tr          *ebpf.Tracer
	client, vip netip.AddrPort
	backend     netip.AddrPort
}

// connect is the handshake, with whichever backend the flow begins at.
func connect(t *testing.T, tr *ebpf.Tracer, client, vip netip.AddrPort) *connection {
	t.Helper()
	c := &connection{t: t, tr: tr, client: client, vip: vip}
	_, c.backend = send(t, tr, asked(intent.TCP, client, vip, "S"))
	c.answers("SA")
	c.asks("A")
	return c
}

func (c *connection) asks(flags string) {
	c.t.Helper()
	if _, to := send(c.t, c.tr, asked(intent.TCP, c.client, c.vip, flags)); to != c.backend {
		c.t.Errorf("%s of %s goes to %s, and the connection is with %s", flags, c.client, to, c.backend)
	}
}

func (c *connection) answers(flags string) {
	c.t.Helper()
	if from, _ := send(c.t, c.tr, replied(intent.TCP, c.backend, c.client, flags)); from != c.vip {
		c.t.Errorf("%s for %s is from %s, not %s", flags, c.client, from, c.vip)
	}
}

// A connection that begins has nothing of one before from the same port that its server alone
// has ended: it is known as long as any other.
func TestBalanceBeginsAnew(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	apply(t, d.VIPs(), besides())
	allKnown(t, dir)
	tr := tracer(t, dir)
	for i, beside := range []bool{false, true} {
		t.Run(fmt.Sprintf("beside another %v", beside), func(t *testing.T) {
			for j, addr := range []struct{ client, vip netip.Addr }{{client4, vip4}, {client6, vip6}} {
				client, vip := netip.AddrPortFrom(addr.client, uint16(22000+10*i+j)), netip.AddrPortFrom(addr.vip, 80)
				if beside {
					connect(t, tr, client, netip.AddrPortFrom(addr.vip, 4000))
				}
				connect(t, tr, client, vip).answers("F")
				aged(t, dir, 600)
				c := connect(t, tr, client, vip)
				c.answers("A")
				aged(t, dir, 300)
				c.answers("A")
			}
		})
	}
}

// The second connection of a port is not led to the backend of one that its server alone has
// ended: the client may send for long still.
func TestBalanceBesideHalfClosed(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	for _, family := range []struct {
		client, vip netip.Addr
		backends    string
	}{{client4, vip4, "10.10.0.%d"}, {client6, vip6, "fd00:10::%d"}} {
		for _, port := range []uint16{6000, 6001} {
			apply(t, d.VIPs(), vips(vip(intent.TCP, family.vip, port, backendsOf(family.backends, 3, 7100)...)))
		}
		allKnown(t, dir)
		tr := tracer(t, dir)
		for i := range 100 {
			client := netip.AddrPortFrom(family.client, uint16(23000+i))
			first := connect(t, tr, client, netip.AddrPortFrom(family.vip, 6000))
			first.answers("F")
			first.asks("A")
			second := connect(t, tr, client, netip.AddrPortFrom(family.vip, 6001))
			if second.backend == first.backend {
				t.Errorf("the second connection of %s has the backend of the first", client)
			}
			first.asks("A")
			second.asks("A")
			second.answers("A")
		}
	}
}

// Connections to a VIP that has gone end with it: whoever begins goes where packets without a
// VIP go, also from a port that had one, and to the new backends when the VIP comes again.
func TestBalanceOfDeletedVIP(t *testing.T) {
	dir := bpffs(t)
	d := balanced(t, dir)
	for _, family := range []struct{ client, vip, next netip.Addr }{
		{client4, vip4, addr("10.10.0.99")}, {client6, vip6, addr("fd00:10::99")},
	} {
		allKnown(t, dir)
		tr := tracer(t, dir)
		client, at := netip.AddrPortFrom(family.client, 22000), netip.AddrPortFrom(family.vip, 80)
		connect(t, tr, client, at)
		aged(t, dir, 5)
		key := intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: family.vip, Port: 80}
		for _, err := range d.VIPs().Delete(t.Context(), []intent.VIPKey{key}) {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, to := send(t, tr, asked(intent.TCP, client, at, "S")); to != at {
			t.Errorf("without the VIP %s is led to %s", at, to)
		}
		apply(t, d.VIPs(), vips(vip(intent.TCP, family.vip, 80, intent.Backend{Addr: family.next, Port: 9, Weight: 1})))
		if c := connect(t, tr, client, at); c.backend != netip.AddrPortFrom(family.next, 9) {
			t.Errorf("the VIP that came again leads to %s", c.backend)
		}
	}
}
