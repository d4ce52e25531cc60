package bpf_test

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What only a wire shows: VLAN tags and outer headers.

// A gateway port with a VLAN: packets go out with its tag, come in with it, and a
// service tag of the same number is not it.
func TestDevicesWithVLAN(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			m := newMachine(t, hook)
			m.start(1500)
			gateway := gateways()[gwVLAN]
			gateway.VNI = red
			apply(t, m.d.Gateways(), map[intent.GatewayKey]intent.Gateway{gwVLAN: gateway})
			apply(t, m.d.Routes(), routes(local(red, "10.30.0.0/24", gwVLAN), local(red, "fd00:30::/64", gwVLAN)))
			if err := unix.SetsockoptInt(m.ovs, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
				t.Fatal(err)
			}
			for _, in := range [][]byte{in4("10.20.0.9", "10.30.0.5"), in6("fd00:20::9", "fd00:30::5")} {
				m.send(peer4, local4, in)
				out, tag := m.tagged()
				if tag != 300 {
					t.Errorf("a packet from the fabric has the VLAN %d, want 300", tag)
				}
				forwarded(nextHopMAC, gwMAC)(t, decode(in), decode(out))
			}
			m.ovsFrame(withTag(0x88a8, 300, out4("10.30.0.5", "10.20.0.9")))
			for _, out := range [][]byte{out4("10.30.0.5", "10.20.0.9"), out6("fd00:30::5", "fd00:20::9")} {
				m.ovsFrame(withTag(0x8100, 300, out))
				m.atPeer(peer4, 5001, out)
			}
			if _, drops := counts(t, m.d); drops[drop.NestedVLAN] != 1 {
				t.Errorf("%d packets with a service tag were dropped, want 1; drops: %v", drops[drop.NestedVLAN], drops)
			}
		})
	}
}

func withTag(proto, vlan uint16, b []byte) []byte {
	out := append([]byte(nil), b[:12]...)
	out = binary.BigEndian.AppendUint16(out, proto)
	out = binary.BigEndian.AppendUint16(out, vlan)
	return append(out, b[12:]...)
}

// tagged reads what OVS gets, with the tag that the kernel keeps beside it.
func (m *machine) tagged() (frame []byte, vlan uint16) {
	m.t.Helper()
	buf, control := make([]byte, 2048), make([]byte, 256)
	n, c, _, _, err := unix.Recvmsg(m.ovs, buf, control, 0)
	for errors.Is(err, unix.EINTR) {
		n, c, _, _, err = unix.Recvmsg(m.ovs, buf, control, 0)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(control[:c])
	if err != nil {
		m.t.Fatal(err)
	}
	for _, message := range messages {
		// struct tpacket_auxdata of <linux/if_packet.h>.
		if message.Header.Type == unix.PACKET_AUXDATA && len(message.Data) >= 20 {
			vlan = binary.NativeEndian.Uint16(message.Data[16:]) & 0xfff
		}
	}
	return buf[:n], vlan
}

// The outer DF bit, in each mode, for inner packets with and without their own.
func TestOuterDFOnWire(t *testing.T) {
	four := func(df layers.IPv4Flag) []byte {
		ip := ip4("10.10.0.5", "10.20.0.9", layers.IPProtocolUDP)
		ip.Flags = df
		return frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip, udp(), gopacket.Payload("hello"))
	}
	with, without, six := four(layers.IPv4DontFragment), four(0), out6("fd00:10::5", "fd00:20::9")
	for _, c := range []struct {
		name               string
		mode               ebpf.DF
		with, without, six bool
	}{
		{"auto", ebpf.DFAuto, true, false, true},
		{"set", ebpf.DFSet, true, true, true},
		{"clear", ebpf.DFClear, false, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMachine(t, ebpf.HookAuto)
			m.start(1500)
			n := m.d.Node()
			n.DF = c.mode
			m.inside(m.node, func() error { return m.d.SetNode(n) })
			var wire int
			m.inside(m.far, func() (err error) {
				wire, err = packetSocket("under")
				return err
			})
			defer unix.Close(wire)
			for _, p := range []struct {
				name  string
				frame []byte
				want  bool
			}{{"with DF", with, c.with}, {"without DF", without, c.without}, {"IPv6", six, c.six}} {
				m.fromOVS(peer4, 5001, p.frame)
				if got, err := outerDF(wire); err != nil || got != p.want {
					t.Errorf("inner packet %s: outer DF is %t (%v), want %t", p.name, got, err, p.want)
				}
			}
		})
	}
}

// outerDF reads up to the next VXLAN packet of the node.
func outerDF(wire int) (bool, error) {
	buf := make([]byte, 2048)
	for {
		n, _, err := unix.Recvfrom(wire, buf, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return false, err
		}
		p := decode(buf[:n])
		ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if ok && p.Layer(layers.LayerTypeVXLAN) != nil {
			return ip.Flags&layers.IPv4DontFragment != 0, nil
		}
	}
}
