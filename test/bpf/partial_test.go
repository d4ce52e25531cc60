package bpf_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// oneBridge has every bridge behind one device.
type oneBridge uint32

func (b oneBridge) Port(intent.BridgeKey) (ebpf.Port, bool) {
	return ebpf.Port{IfIndex: uint32(b), MTU: 1500}, true
}

// partial is a frame whose TCP or UDP checksum is still to be filled in, as a
// VM with checksum offload sends it.
func partial(l3 gopacket.SerializableLayer, l4 gopacket.SerializableLayer, size int) (b []byte, start, offset uint16) {
	etherType, headers := layers.EthernetTypeIPv4, 20
	if _, ok := l3.(*layers.IPv6); ok {
		etherType, headers = layers.EthernetTypeIPv6, 40
	}
	offset, upper := 6, 8
	if _, ok := l4.(*layers.TCP); ok {
		offset, upper = 16, 20
	}
	payload := make([]byte, size-headers-upper)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	b = frame(ether(gwMAC, nextHopMAC, etherType), l3, l4, gopacket.Payload(payload))
	addresses, proto := b[14+12:14+20], uint32(b[14+9])
	if headers == 40 {
		addresses, proto = b[14+8:14+40], uint32(b[14+6])
	}
	sum := proto + uint32(len(b)-14-headers)
	for i := 0; i < len(addresses); i += 2 {
		sum += uint32(addresses[i])<<8 | uint32(addresses[i+1])
	}
	for sum>>16 != 0 {
		sum = sum&0xffff + sum>>16
	}
	start = uint16(14 + headers)
	binary.BigEndian.PutUint16(b[start+offset:], uint16(sum))
	return b, start, offset
}

// mortal is a header that the next router must not forward.
func mortal(six bool) gopacket.SerializableLayer {
	if six {
		h := ip6("fd00:10::5", "fd00:20::9", layers.IPProtocolUDP)
		h.HopLimit = 1
		return h
	}
	h := ip4("10.10.0.5", "10.20.0.9", layers.IPProtocolUDP)
	h.TTL = 1
	return h
}

// tunnelled is a frame with VXLAN of the tenant's own, in which a TCP checksum is
// still to be filled in. The outer UDP header has none, or one that takes the
// inner one into account.
func tunnelled(six, outerSum bool) (b []byte, start, offset uint16) {
	inner, innerStart, offset := partial(ip4("192.168.0.1", "192.168.0.2", layers.IPProtocolTCP), &layers.TCP{SrcPort: 1, DstPort: 2, ACK: true}, 500)
	etherType, headers := layers.EthernetTypeIPv4, 20
	if six {
		etherType, headers = layers.EthernetTypeIPv6, 40
	}
	b = frame(ether(gwMAC, nextHopMAC, etherType), mortal(six), &layers.UDP{SrcPort: 40000, DstPort: 4789},
		&layers.VXLAN{ValidIDFlag: true, VNI: 7}, gopacket.Payload(inner))
	if !outerSum {
		b[14+headers+6], b[14+headers+7] = 0, 0
	}
	return b, uint16(14+headers+8+8) + innerStart, offset
}

// rawSocket sends with a virtio header and receives frames of a device.
func rawSocket(ifindex int) (int, error) {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(ethPAll()))
	if err != nil {
		return 0, err
	}
	return fd, errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10}),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: ethPAll(), Ifindex: ifindex}))
}

func ethPAll() uint16 { return unix.ETH_P_ALL<<8&0xff00 | unix.ETH_P_ALL>>8 }

const virtioHeader = 10

func sendPartial(fd int, b []byte, start, offset uint16) error {
	h := make([]byte, virtioHeader, virtioHeader+len(b))
	h[0] = 1 // VIRTIO_NET_HDR_F_NEEDS_CSUM
	binary.NativeEndian.PutUint16(h[6:], start)
	binary.NativeEndian.PutUint16(h[8:], offset)
	_, err := unix.Write(fd, append(h, b...))
	return err
}

// exchange sends a frame and waits for one from the next hop.
func exchange(fd int, b []byte, start, offset uint16) ([]byte, error) {
	if err := sendPartial(fd, b, start, offset); err != nil {
		return nil, err
	}
	for {
		in := make([]byte, 4096)
		n, err := unix.Read(fd, in)
		if err != nil {
			return nil, err
		}
		if in = in[virtioHeader:n]; len(in) > 14 && [6]byte(in[6:12]) == nextHopMAC {
			return in, nil
		}
	}
}

// TestICMPOfOffloadedPacket sends packets without their checksum through the
// attached program. The kernel fills in the checksum inside the quote, and the
// error's own has to be right after that.
func TestICMPOfOffloadedPacket(t *testing.T) {
	ns, index := namespace(t)
	dir := bpffs(t)
	if err := ns.Do(func() error { return offloaded(t, dir, index) }); err != nil {
		t.Fatal(err)
	}
}

func offloaded(t *testing.T, dir string, index int) error {
	d := load(t, ebpf.Config{Dir: dir, Node: node(), Bridges: oneBridge(index)})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(t, d.Routes(), routes(local(red, "10.10.0.0/24", gw), local(red, "fd00:10::/64", gw),
		remote(red, "10.20.0.0/24", hop(peer4, 5001)), remote(red, "fd00:20::/64", hop(peer4, 5001))))
	if err := d.Attach(ebpf.OverlayIn, index); err != nil {
		return err
	}
	for _, command := range [][]string{
		// What leaves sluice0 is filled in by the kernel, not left to the other end.
		{"ethtool", "-K", "sluice0", "tx", "off"},
		{"ip", "link", "set", "sluice0", "up"}, {"ip", "link", "set", "sluice0-ovs", "up"},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v: %s", command, err, out)
		}
	}
	peer, err := running(t, "sluice0-ovs")
	if err != nil {
		return err
	}
	fd, err := rawSocket(peer.Index)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	for _, c := range offloadedCases() {
		b, start, offset := partial(c.l3, c.l4, c.size)
		in, err := exchange(fd, b, start, offset)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := decode(in).Layer(c.want); got == nil {
			t.Errorf("%s: got %s", c.name, decode(in))
			continue
		}
		t.Log(c.name)
		checksums(t, in)
	}
	return insideTunnels(t, fd)
}

// insideTunnels: the checksum of a packet inside a tunnel of the tenant's is left
// alone; the answer that comes is that to the packet behind it.
func insideTunnels(t *testing.T, fd int) error {
	for _, c := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		six := c[0]
		b, start, offset := tunnelled(six, c[1])
		if err := sendPartial(fd, b, start, offset); err != nil {
			return err
		}
		plain, start, offset := partial(mortal(six), udp(), 333)
		in, err := exchange(fd, plain, start, offset)
		if err != nil {
			return err
		}
		// The quote begins with the IP header of what the answer is to.
		length, want := 14+20+8+2, uint16(333)
		if six {
			length, want = 14+40+8+4, 333-40
		}
		if binary.BigEndian.Uint16(in[length:]) != want {
			t.Errorf("an answer to the tunnel's packet:\n%s", decode(in))
		}
		checksums(t, in)
	}
	return nil
}

// running waits for a device's carrier: what is sent before it is lost.
func running(t *testing.T, name string) (*net.Interface, error) {
	for {
		l, err := net.InterfaceByName(name)
		if err != nil || l.Flags&net.FlagRunning != 0 {
			return l, err
		}
		select {
		case <-t.Context().Done():
			return nil, t.Context().Err()
		case <-time.After(time.Millisecond):
		}
	}
}

type offloadedCase struct {
	name   string
	l3, l4 gopacket.SerializableLayer
	size   int
	want   gopacket.LayerType
}

func offloadedCases() (out []offloadedCase) {
	for _, size := range []int{60, 100, 128, 129, 777, 1500} {
		for _, proto := range []layers.IPProtocol{layers.IPProtocolUDP, layers.IPProtocolTCP} {
			four, six := ip4("10.10.0.5", "10.20.0.9", proto), ip6("fd00:10::5", "fd00:20::9", proto)
			four.Flags = layers.IPv4DontFragment
			name := "too big "
			if size < 1500 {
				name, four.TTL, six.HopLimit = fmt.Sprintf("TTL, %d bytes, ", size), 1, 1
			}
			upper := func() gopacket.SerializableLayer {
				if proto == layers.IPProtocolTCP {
					return &layers.TCP{SrcPort: 40000, DstPort: 7777, ACK: true, Window: 100}
				}
				return udp()
			}
			out = append(out, offloadedCase{name + four.Protocol.String(), four, upper(), size, layers.LayerTypeICMPv4},
				offloadedCase{name + "6 " + six.NextHeader.String(), six, upper(), size, layers.LayerTypeICMPv6})
		}
	}
	return out
}
