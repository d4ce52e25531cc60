package kernel

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

func TestTunnelKey(t *testing.T) {
	a := netip.MustParseAddr
	for _, k := range []tunnelKey{
		{vni: 1001, src: a("192.0.2.1"), dst: a("192.0.2.2"), ttl: 64, flags: tunnelChecksum | tunnelDontFragment},
		{vni: 16777215, src: a("2001:db8::1"), dst: a("2001:db8::2"), ttl: 255, tos: 4},
	} {
		b, err := k.Encode()
		if err != nil {
			t.Fatal(err)
		}
		var got tunnelKey
		if err := got.Decode(b); err != nil || !got.Equal(&k) {
			t.Errorf("%s, %v, want %s", &got, err, &k)
		}
	}
	if _, err := (&tunnelKey{src: a("192.0.2.1"), dst: a("2001:db8::2")}).Encode(); err == nil {
		t.Error("a tunnel of two families has no error")
	}
}

func FuzzTunnelKey(f *testing.F) {
	b, _ := (&tunnelKey{vni: 7, src: netip.MustParseAddr("192.0.2.1"), dst: netip.MustParseAddr("192.0.2.2")}).Encode()
	f.Add(b)
	f.Add([]byte{8, 0, 1, 0})
	f.Add([]byte{6, 0, 0, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, b []byte) { _ = new(tunnelKey).Decode(b) })
}

func FuzzParseRoute(f *testing.F) {
	f.Add(make([]byte, unix.SizeofRtMsg))
	f.Add([]byte{2, 24, 0, 0, 254, 115, 0, 1, 0, 0, 0, 0, 8, 0, 1, 0, 10, 0, 0, 0, 12, 0, 9, 0, 8, 0, 0, 0, 1, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		r, ok, err := parseRoute(b)
		if ok && (err != nil || !r.prefix.IsValid()) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// Routes are read back from the kernel as they were written, whatever they lead
// through; replacing one leaves nothing of the other; a removal takes all of it.
func TestRoutesRoundTrip(t *testing.T) {
	ns := fmt.Sprintf("slkfib%d", os.Getpid())
	shell(t, "ip netns add "+ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	shell(t, `nsenter --net=/run/netns/`+ns+` sh -ec 'ip link set lo up; ip link add sluice-vxlan type vxlan external dstport 4789
		ip link set sluice-vxlan arp off addrgenmode none up; ip link add e type veth peer name f; ip link set e up; ip link set f up'`)
	err := netns.Named(ns).Netlink(func(h *netlink.Handle) error {
		for _, prefix := range []string{"10.0.0.0/24", "10.0.0.1/32", "0.0.0.0/0", "fd00::/64", "fd00::1/128", "::/0"} {
			roundTrip(t, h, netip.MustParsePrefix(prefix))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func roundTrip(t *testing.T, h *netlink.Handle, prefix netip.Prefix) {
	t.Helper()
	fabric, other := index(t, h, "sluice-vxlan"), index(t, h, "e")
	a := netip.MustParseAddr
	g1, g2 := a("169.254.200.1"), a("169.254.200.2")
	if prefix.Addr().Is6() {
		g1, g2 = a("fe80::736c:1"), a("fe80::736c:2")
	}
	k1 := tunnelKey{vni: 1, src: a("192.0.2.1"), dst: a("192.0.2.2"), ttl: 64, flags: tunnelDontFragment | tunnelChecksum}
	k2 := tunnelKey{vni: 2, src: a("2001:db8::1"), dst: a("2001:db8::2"), ttl: 64, flags: tunnelDontFragment}
	blank := fibRoute{table: 1001, prefix: prefix, kind: unix.RTN_UNICAST, protocol: RouteProtocol, metric: RouteMetric}
	local, one, two, block := blank, blank, blank, blank
	local.hops = []hop{{ifindex: other, gateway: g1, onlink: true}}
	one.hops, one.mtu, one.locked = []hop{{ifindex: fabric, gateway: g1, onlink: true, key: k1}}, 1450, true
	two.hops, two.mtu, two.locked = []hop{{ifindex: fabric, gateway: g1, onlink: true, key: k1}, {ifindex: fabric, gateway: g2, onlink: true, key: k2}}, 1430, true
	block.kind = unix.RTN_BLACKHOLE
	for i, r := range []fibRoute{local, one, two, one, block, two, local, block, local} {
		if err := r.replace(h); err != nil {
			t.Fatalf("%s, step %d: %v", prefix, i, err)
		}
		got, err := tableRoutes(1001)
		if err != nil || len(got) != 1 {
			t.Fatalf("%s, step %d: %+v, %v", prefix, i, got, err)
		}
		if r.kind == unix.RTN_BLACKHOLE {
			got[0].hops = nil // lo, for IPv6
		}
		if !got[0].equal(&r) {
			t.Errorf("%s, step %d: %+v, want %+v", prefix, i, got[0], r)
		}
	}
	for _, foreign := range []fibRoute{{table: 1001, prefix: prefix, protocol: 4, metric: RouteMetric}} {
		if err := removeRoute(h, foreign); err != nil {
			t.Fatal(err)
		}
		if got, _ := tableRoutes(1001); len(got) != 1 {
			t.Error("another protocol's number removed it")
		}
	}
	if err := two.replace(h); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := removeRoute(h, fibRoute{table: 1001, prefix: prefix, protocol: RouteProtocol, metric: RouteMetric}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := tableRoutes(1001); len(got) != 0 || err != nil {
		t.Errorf("%+v, %v are left", got, err)
	}
}

func index(t *testing.T, h *netlink.Handle, name string) int {
	t.Helper()
	l, err := h.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	return l.Attrs().Index
}

func shell(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}
