package evpn_test

import (
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/test/lab"
)

// hostPort is where the host listens, and must hear no tenant.
const hostPort = 7777

// attacker sends what is made to reach a node's own stack: from its VMs, from the
// fabric as the other VTEP could, and from OVN's side of the veth pair.
type attacker struct {
	w       *world
	targets []netip.Addr
	// fabric are inner frames, bridge are frames towards sluice0.
	fabric, bridge [][]byte
}

func (w *world) attacker() *attacker {
	w.Helper()
	n := w.node("a1")
	a := &attacker{w: w, targets: []netip.Addr{
		n.VTEP4, n.VTEP6, netip.MustParseAddr(fmt.Sprintf("172.29.%d.2", n.Index)), netip.MustParseAddr(fmt.Sprintf("fd29:%d::2", n.Index)), n.Encap,
	}}
	s, err := w.status("a1")
	if err != nil {
		w.Fatal(err)
	}
	mac := w.mac("a1", "sluice0")
	router, own, all := s.RouterMAC.String(), w.mac("a1", "sluice-vxlan"), "ff:ff:ff:ff:ff:ff"
	for _, dst := range a.targets {
		for _, to := range []string{router, own, all} {
			a.fabric = append(a.fabric, w.frame(to, dst))
		}
		for _, to := range []string{mac, all} {
			a.bridge = append(a.bridge, w.frame(to, dst))
		}
	}
	return a
}

// mac is the address of a device.
func (w *world) mac(node, device string) string {
	w.Helper()
	return strings.TrimSpace(w.exec(node, "sh", "-c", "ip -o link show "+device+" | sed 's/.*ether \\([0-9a-f:]*\\).*/\\1/'"))
}

// frame is a datagram of a VM in cloud B.
func (w *world) frame(to string, dst netip.Addr) []byte {
	w.Helper()
	mac, err := net.ParseMAC(to)
	if err != nil {
		w.Fatalf("MAC of a1: %v", err)
	}
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 9}, DstMAC: mac, EthernetType: layers.EthernetTypeIPv4}
	udp := &layers.UDP{SrcPort: 9, DstPort: hostPort}
	var ip gopacket.SerializableLayer
	if dst.Is4() {
		h := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.ParseIP(addrB4).To4(), DstIP: dst.AsSlice()}
		ip, err = h, udp.SetNetworkLayerForChecksum(h)
	} else {
		eth.EthernetType = layers.EthernetTypeIPv6
		h := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.ParseIP(addrB6), DstIP: dst.AsSlice()}
		ip, err = h, udp.SetNetworkLayerForChecksum(h)
	}
	if err != nil {
		w.Fatal(err)
	}
	b := gopacket.NewSerializeBuffer()
	options := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(b, options, eth, ip, udp, gopacket.Payload("is anybody home?")); err != nil {
		w.Fatal(err)
	}
	return b.Bytes()
}

// strike sends everything, and makes sure that the crafted frames came in.
func (a *attacker) strike() {
	w := a.w
	w.Helper()
	var addrs []string
	for _, t := range a.targets {
		addrs = append(addrs, t.String())
	}
	for _, vm := range []string{"a-red1", "a-blue1", "b-red1"} {
		w.send(vm, addrs, hostPort)
	}
	vxlan, pair := w.received("a1", "sluice-vxlan"), w.received("a1", "sluice0")
	a1, b1 := w.node("a1"), w.node("b1")
	for _, ends := range [][2]netip.Addr{{b1.VTEP4, a1.VTEP4}, {b1.VTEP6, a1.VTEP6}} {
		w.in("b1", func() error {
			c, err := net.DialUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(ends[0], 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(ends[1], 4789)))
			if err != nil {
				return err
			}
			defer c.Close()
			for _, f := range a.fabric {
				// RFC 7348 section 5: the I flag, and the VNI in the upper 24 bits.
				header := []byte{8, 0, 0, 0, vniRed >> 16, vniRed >> 8 & 0xff, vniRed & 0xff, 0}
				if _, err := c.Write(append(header, f...)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for _, f := range a.bridge {
		w.exec("a1", "sh", "-ec", "printf "+hex.EncodeToString(f)+" | xxd -r -p | socat -u - INTERFACE:sluice0-ovs")
	}
	w.eventually("the crafted frames came in", func() error {
		fromFabric, fromBridge := w.received("a1", "sluice-vxlan")-vxlan, w.received("a1", "sluice0")-pair
		if fromFabric < 2*len(a.fabric) || fromBridge < len(a.bridge) {
			return fmt.Errorf("%d of %d from the fabric, %d of %d from the bridge", fromFabric, 2*len(a.fabric), fromBridge, len(a.bridge))
		}
		return nil
	})
}

// received are the packets that a device of a node has received.
func (w *world) received(node, device string) int {
	w.Helper()
	var n int
	out := w.exec(node, "sh", "-ec", "awk '$1 == \""+device+":\" { print $3 }' /proc/net/dev")
	if _, err := fmt.Sscan(out, &n); err != nil {
		w.Fatalf("packets of %s on %s: %v", device, node, err)
	}
	return n
}

// A tenant sends to the node's own addresses, and so does one who can make any
// frame in the tenant's network: nothing arrives at the host's sockets, with the
// programs and without them, and not by the filter behind the programs alone.
func TestTenantNeverReachesTheHost(t *testing.T) {
	w := own(t, lab.EVPN(lab.EVPNParams{}), "")
	w.connected()
	n := w.node("a1")
	got := w.listen("a1", hostPort)
	// The listener works: another node reaches it over the underlay.
	w.send("b1", []string{n.VTEP4.String(), n.VTEP6.String()}, hostPort)
	w.eventually("the listener hears the underlay", func() error {
		if n := len(got()); n != 6 {
			return fmt.Errorf("%d datagrams of 6", n)
		}
		return nil
	})
	a := w.attacker()
	attack := func(what string) {
		t.Helper()
		heard := len(got())
		a.strike()
		var pings sync.WaitGroup
		for _, vm := range []string{"a-red1", "a-blue1", "b-red1"} {
			for _, addr := range a.targets {
				pings.Go(func() {
					if out, err := w.Exec(t.Context(), vm, "ping", "-n", "-c2", "-i0.05", "-W0.3", addr.String()); err == nil {
						t.Errorf("%s: %s answers %s:\n%s", what, addr, vm, out)
					}
				})
			}
		}
		pings.Wait()
		if all := got(); len(all) != heard {
			t.Errorf("%s: the host got %v", what, all[heard:])
		}
	}
	attack("with programs")
	w.kill("a1", "sluiced")
	// A link goes with its pin.
	w.exec("a1", "sh", "-c", `find "$SLUICE_BPFFS" -type f -name 'link_*' -print -delete`)
	// The kernel lets go of an unpinned link only some time later.
	w.eventually("the programs are off", func() error {
		if _, err := w.Exec(t.Context(), "a-red1", "ping", "-n", "-c1", "-W0.3", addrB4); err == nil {
			return fmt.Errorf("a-red1 reaches %s", addrB4)
		}
		return nil
	})
	attack("without programs")

	// The second line holds alone.
	w.exec("a1", "sh", "-ec", `for d in sluice-vxlan sluice0; do
		echo 0 > /proc/sys/net/ipv6/conf/$d/disable_ipv6; echo 0 > /proc/sys/net/ipv4/conf/$d/rp_filter
	done; echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter`)
	attack("without programs, on open devices")
	w.controls(a, got)
	w.startAgain("a1", "sluiced")
	w.connected()
	w.clean()
	attack("after a new start")
}

// controls: the same frames do reach the host where a device is not closed.
func (w *world) controls(a *attacker, got func() []string) {
	w.Helper()
	w.exec("a1", "sh", "-ec", "for d in sluice-vxlan sluice0; do tc qdisc del dev $d clsact; done")
	for device, frames := range map[string]*[][]byte{"sluice-vxlan": &a.bridge, "sluice0": &a.fabric} {
		only, heard := *a, len(got())
		if frames == &a.bridge {
			only.bridge = nil
		} else {
			only.fabric = nil
		}
		only.strike()
		w.eventually("the host hears the control through "+device, func() error {
			if len(got()) == heard {
				return fmt.Errorf("nothing came")
			}
			return nil
		})
	}
}
