package evpn_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/test/lab"
)

// capture records until stop is called.
func (w *world) capture(node, iface, filter string) *lab.Capture {
	w.Helper()
	c, err := w.Capture(w.Context(), node, iface, filter)
	if err != nil {
		w.Fatal(err)
	}
	return c
}

func (w *world) stop(c *lab.Capture) []lab.Packet {
	w.Helper()
	p, err := c.Stop()
	if err != nil {
		w.Fatal(err)
	}
	return p
}

// outer is one VXLAN packet on the underlay.
type outer struct {
	src, dst netip.Addr
	df       bool
	checksum uint16
	vni      uint32
	routerMAC,
	innerSrcMAC net.HardwareAddr
	innerSrc, innerDst netip.Addr
	inner              gopacket.Packet
}

func parseOuter(p lab.Packet) (outer, error) {
	var o outer
	pkt := gopacket.NewPacket(p.Data, layers.LayerTypeEthernet, gopacket.Default)
	switch ip := pkt.NetworkLayer().(type) {
	case *layers.IPv4:
		o.df = ip.Flags&layers.IPv4DontFragment != 0
	case *layers.IPv6:
	default:
		return o, fmt.Errorf("no IP: %s", pkt)
	}
	o.src, o.dst = ends(pkt)
	udp, ok := pkt.TransportLayer().(*layers.UDP)
	if !ok || len(udp.Payload) < 8 {
		return o, fmt.Errorf("no VXLAN: %s", pkt)
	}
	o.checksum, o.vni = udp.Checksum, binary.BigEndian.Uint32(udp.Payload[4:8])>>8
	o.inner = gopacket.NewPacket(udp.Payload[8:], layers.LayerTypeEthernet, gopacket.Default)
	eth, ok := o.inner.LinkLayer().(*layers.Ethernet)
	if !ok {
		return o, fmt.Errorf("no inner frame: %s", pkt)
	}
	o.routerMAC, o.innerSrcMAC = eth.DstMAC, eth.SrcMAC
	o.innerSrc, o.innerDst = ends(o.inner)
	return o, nil
}

func ends(p gopacket.Packet) (src, dst netip.Addr) {
	if n := p.NetworkLayer(); n != nil {
		s, d := n.NetworkFlow().Endpoints()
		src, _ = netip.AddrFromSlice(s.Raw())
		dst, _ = netip.AddrFromSlice(d.Raw())
	}
	return src, dst
}

// What goes over the underlay is VXLAN of the tenant's VNI between the VTEPs,
// from router MAC to router MAC, by default with the inner packet's DF and without
// UDP checksum.
func TestOuterHeaders(t *testing.T) {
	w := shared(t)
	w.outerHeaders(false, false)
}

// outerHeaders checks them; always: DF is set whatever the inner packet says.
func (w *world) outerHeaders(always, checksum bool) {
	w.Helper()
	a1, err := w.status("a1")
	if err != nil {
		w.Fatal(err)
	}
	b1, err := w.status("b1")
	if err != nil {
		w.Fatal(err)
	}
	c := w.capture("a1", lab.UnderlayLink, "udp port 4789")
	for vm, size := range map[string]int{"a-red1": 301, "a-blue1": 302} {
		for _, addr := range far(vm) {
			w.pings(vm, addr, size)
		}
	}
	seen := map[string]int{}
	for _, p := range w.stop(c) {
		o, err := parseOuter(p)
		if err != nil {
			w.Fatal(err)
		}
		from, to := a1, b1
		if o.src == b1.VTEP {
			from, to = b1, a1
		}
		if o.src != from.VTEP || o.dst != to.VTEP {
			w.Errorf("outer addresses %s > %s, VTEPs %s and %s", o.src, o.dst, a1.VTEP, b1.VTEP)
		}
		if o.routerMAC.String() != to.RouterMAC.String() || o.innerSrcMAC.String() != from.RouterMAC.String() {
			w.Errorf("inner MACs %s > %s, router MACs %s and %s", o.innerSrcMAC, o.routerMAC, a1.RouterMAC, b1.RouterMAC)
		}
		if want := always || innerDF(o.inner); o.src.Is4() && o.df != want {
			w.Errorf("outer DF %v of %s > %s, want %v", o.df, o.innerSrc, o.innerDst, want)
		}
		if (o.checksum != 0) != checksum {
			w.Errorf("outer UDP checksum %#x, wanted one: %v", o.checksum, checksum)
		}
		want := uint32(vniRed)
		if size(o.inner) == 302 {
			want = vniBlue
		}
		if o.vni != want {
			w.Errorf("VNI %d on a packet of VNI %d", o.vni, want)
		}
		seen[fmt.Sprintf("%d %s > %s", o.vni, o.innerSrc, o.innerDst)]++
	}
	for _, vni := range []int{vniRed, vniBlue} {
		for _, e := range [][2]string{{addrA4, addrB4}, {addrB4, addrA4}, {addrA6, addrB6}, {addrB6, addrA6}} {
			if k := fmt.Sprintf("%d %s > %s", vni, e[0], e[1]); seen[k] != 4 {
				w.Errorf("%d packets %s, want 4", seen[k], k)
			}
		}
	}
}

// innerDF tells whether a packet may not be fragmented: no IPv6 packet may.
func innerDF(p gopacket.Packet) bool {
	v4, ok := p.NetworkLayer().(*layers.IPv4)
	return !ok || v4.Flags&layers.IPv4DontFragment != 0
}

// size is the length of an IP packet by its own header.
func size(p gopacket.Packet) int {
	switch ip := p.NetworkLayer().(type) {
	case *layers.IPv4:
		return int(ip.Length)
	case *layers.IPv6:
		return int(ip.Length) + 40
	}
	return 0
}

// Each tenant talks with sizes of its own to the same addresses: not one packet
// of the other arrives, in either direction.
func TestTenantsNeverMeet(t *testing.T) {
	w := shared(t)
	sizes := map[string]int{"a-red1": 401, "b-red1": 403, "a-blue1": 402, "b-blue1": 404}
	captures := map[string]*lab.Capture{}
	for _, vm := range vms {
		captures[vm] = w.capture(vm, "eth0", "icmp or icmp6[0] == 128 or icmp6[0] == 129")
	}
	var streams []*stream
	for _, vm := range vms {
		for _, addr := range far(vm) {
			streams = append(streams, w.stream(vm, addr, "-c", "50", "-i", "0.05", "-s", fmt.Sprint(sizes[vm]-headers(addr))))
		}
	}
	for _, s := range streams {
		s.noLoss(s.wait())
	}
	for vm, c := range captures {
		n := map[int]int{}
		for _, p := range w.stop(c) {
			n[size(gopacket.NewPacket(p.Data, layers.LayerTypeEthernet, gopacket.Default))]++
		}
		// Two families, fifty requests and answers each, in two directions.
		pair := map[bool]string{true: "red", false: "blue"}[vm[2] == 'r']
		want := map[int]int{sizes["a-"+pair+"1"]: 200, sizes["b-"+pair+"1"]: 200}
		for size, count := range n {
			if want[size] != count {
				t.Errorf("%s: %d packets of %d bytes, want %d", vm, count, size, want[size])
			}
		}
		if len(n) != len(want) {
			t.Errorf("%s saw %v, want %v", vm, n, want)
		}
	}
}
