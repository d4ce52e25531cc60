package bpf_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// patience is for a broken build only.
const patience = time.Minute

// machine is a node with real devices, and a VTEP of the fabric that is two
// UDP sockets in a namespace of its own: what PROG_TEST_RUN cannot show is what
// the programs and the kernel's VXLAN device make of each other.
type machine struct {
	t       *testing.T
	node    netns.Namespace
	far     netns.Namespace // where the VTEPs of the fabric are
	d       *ebpf.Dataplane
	hook    ebpf.Hook
	dir     string
	devices map[ebpf.Program]int
	ovs     int // packet socket on the far end of sluice0, once that is up
	peer    map[netip.Addr]*net.UDPConn
}

// fewRows keeps the time for making maps short on emulated processors.
var fewRows = ebpf.Limits{VRFs: 16, Gateways: 16, VTEPs: 16, Served: 16, Hosts: 64, Prefixes: 64, NextHops: 64, Groups: 16}

// toBridge is the one provider bridge.
type toBridge struct{ index *int }

func (b toBridge) Port(intent.BridgeKey) (ebpf.Port, bool) {
	return ebpf.Port{IfIndex: uint32(*b.index), MTU: 1500}, *b.index != 0
}

func newMachine(t *testing.T, hook ebpf.Hook) *machine {
	node, peer := fmt.Sprintf("sluice-dev-n%d", os.Getpid()), fmt.Sprintf("sluice-dev-p%d", os.Getpid())
	for _, ns := range []string{node, peer} {
		command(t, "ip netns add "+ns)
		t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", ns).Run() })
	}
	for _, line := range []string{
		"ip -n NODE link add under type veth peer name under netns PEER",
		"ip -n NODE addr add 192.0.2.1/24 dev under", "ip -n NODE addr add 2001:db8:ffff::1/64 dev under nodad",
		"ip -n PEER addr add 192.0.2.9/24 dev under", "ip -n PEER addr add 2001:db8:ffff::9/64 dev under nodad",
		"ip -n NODE link set lo up", "ip -n NODE link set under up", "ip -n PEER link set under up",
		"ip -n NODE link add sluice0 type veth peer name sluice0-ovs",
		"ip -n NODE link set sluice0 addrgenmode none", "ip -n NODE link set sluice0-ovs addrgenmode none",
	} {
		command(t, strings.NewReplacer("NODE", node, "PEER", peer).Replace(line))
	}
	m := &machine{t: t, node: netns.Named(node), far: netns.Named(peer), hook: hook, dir: bpffs(t), devices: map[ebpf.Program]int{}, peer: map[netip.Addr]*net.UDPConn{}}
	m.inside(m.node, func() error {
		near, err := net.InterfaceByName("sluice0")
		if err != nil {
			return err
		}
		m.devices[ebpf.OverlayIn] = near.Index
		return nil
	})
	m.inside(m.far, func() error {
		for _, a := range []netip.Addr{peer4, peer6} {
			c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(a, kernel.DefaultPort)))
			if err != nil {
				return err
			}
			m.peer[a] = c
			t.Cleanup(func() { c.Close() })
		}
		return nil
	})
	return m
}

func command(t *testing.T, line string) {
	t.Helper()
	words := strings.Fields(line)
	if b, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, b)
	}
}

func (m *machine) inside(ns netns.Namespace, f func() error) {
	m.t.Helper()
	if err := ns.Do(f); err != nil {
		m.t.Fatal(err)
	}
}

// packetSocket reads and writes the frames of a device.
func packetSocket(device string) (int, error) {
	dev, err := net.InterfaceByName(device)
	if err != nil {
		return -1, err
	}
	const all = 0x0300 // ETH_P_ALL in network byte order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all)
	if err != nil {
		return -1, fmt.Errorf("packet socket: %w", err)
	}
	timeout := unix.NsecToTimeval(patience.Nanoseconds())
	err = errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &timeout),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: dev.Index}),
	)
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("packet socket on %s: %w", device, err)
	}
	return fd, nil
}

// start loads the programs and attaches both, each before its device is up.
func (m *machine) start(underlayMTU uint16) {
	m.t.Helper()
	n := node()
	n.UnderlayMTU = underlayMTU
	fabric := func(attach func(context.Context, string, int) error) {
		m.t.Helper()
		if _, err := kernel.NewFabric(kernel.FabricConfig{Namespace: m.node, RouterMAC: routerMAC, Attach: attach}).Ensure(m.t.Context()); err != nil {
			m.t.Fatal(err)
		}
	}
	if m.devices[ebpf.FabricIn] == 0 { // before the programs, which would be verified again for it
		fabric(func(_ context.Context, _ string, ifindex int) error { m.devices[ebpf.FabricIn] = ifindex; return nil })
	}
	n.VXLANIndex = uint32(m.devices[ebpf.FabricIn])
	overlay := m.devices[ebpf.OverlayIn]
	m.inside(m.node, func() error {
		m.d = load(m.t, ebpf.Config{Dir: m.dir, Node: n, Hook: m.hook, Limits: fewRows, Bridges: toBridge{&overlay}})
		return nil
	})
	fabric(func(_ context.Context, _ string, ifindex int) error {
		n.VXLANIndex, m.devices[ebpf.FabricIn] = uint32(ifindex), ifindex
		return errors.Join(m.d.SetNode(n), m.d.Attach(ebpf.FabricIn, ifindex))
	})
	m.inside(m.node, func() error { return m.d.Attach(ebpf.OverlayIn, overlay) })
	m.inside(m.node, func() error { return m.up("sluice0", "sluice0-ovs") })
	apply(m.t, m.d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	apply(m.t, m.d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(m.t, m.d.VTEPs(), map[netip.Addr]intent.VTEP{peer4: {Addr: peer4}, peer6: {Addr: peer6}})
	apply(m.t, m.d.Routes(), routes(local(red, "10.10.0.0/24", gw), local(red, "fd00:10::/64", gw),
		remote(red, "10.20.0.0/24", hop(peer4, 5001)), remote(red, "10.26.0.0/24", hop(peer6, 5006)),
		remote(red, "fd00:20::/64", hop(peer4, 5001)), remote(red, "fd00:26::/64", hop(peer6, 5006))))
}

// up sets the devices up, and once they are listens as OVS would.
func (m *machine) up(devices ...string) (err error) {
	for _, dev := range devices {
		if out, err := exec.Command("ip", "link", "set", dev, "up").CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", dev, err, out)
		}
	}
	for _, dev := range devices {
		if _, err := running(m.t, dev); err != nil {
			return err
		}
	}
	if m.ovs == 0 {
		if m.ovs, err = packetSocket("sluice0-ovs"); err == nil {
			m.t.Cleanup(func() { unix.Close(m.ovs) })
		}
	}
	return err
}

// send sends a frame in VXLAN (RFC 7348 section 5).
func (m *machine) send(vtep, to netip.Addr, frame []byte) {
	m.t.Helper()
	packet := append([]byte{8, 0, 0, 0, 0, 0, 0, 0}, frame...)
	binary.BigEndian.PutUint32(packet[4:], uint32(red)<<8)
	if _, err := m.peer[vtep].WriteToUDPAddrPort(packet, netip.AddrPortFrom(to, kernel.DefaultPort)); err != nil {
		m.t.Fatal(err)
	}
}

// fromPeer sends a frame in VXLAN and reads what OVS gets. The kernel sends reports of
// its multicast groups of its own accord.
func (m *machine) fromPeer(vtep, to netip.Addr, frame []byte) {
	m.t.Helper()
	m.send(vtep, to, frame)
	forwarded(nextHopMAC, gwMAC)(m.t, decode(frame), decode(m.atOVS()))
}

// atOVS reads what OVS gets.
func (m *machine) atOVS() []byte {
	m.t.Helper()
	buf := make([]byte, 2048)
	n, _, err := unix.Recvfrom(m.ovs, buf, 0)
	for errors.Is(err, unix.EINTR) || err == nil && isMulticast(buf[:n]) {
		n, _, err = unix.Recvfrom(m.ovs, buf, 0)
	}
	if err != nil {
		m.t.Fatalf("nothing came out of sluice0: %v", err)
	}
	return buf[:n]
}

func isMulticast(frame []byte) bool { return len(frame) > 0 && frame[0]&1 != 0 }

// fromOVS sends a frame as OVS does and reads what the VTEP gets.
func (m *machine) fromOVS(vtep netip.Addr, label uint32, frame []byte) {
	m.t.Helper()
	m.ovsFrame(frame)
	m.atPeer(vtep, label, frame)
}

func (m *machine) ovsFrame(frame []byte) {
	m.t.Helper()
	if _, err := unix.Write(m.ovs, frame); err != nil {
		m.t.Fatal(err)
	}
}

// atPeer reads what a VTEP gets: the frame, on its way.
func (m *machine) atPeer(vtep netip.Addr, label uint32, frame []byte) {
	m.t.Helper()
	forwarded(routerMAC, peerMAC)(m.t, decode(frame), decode(m.inTunnel(vtep, label)))
}

// inTunnel reads the inner frame of what a VTEP gets.
func (m *machine) inTunnel(vtep netip.Addr, label uint32) []byte {
	m.t.Helper()
	c := m.peer[vtep]
	_ = c.SetReadDeadline(time.Now().Add(patience))
	buf := make([]byte, 2048)
	n, from, err := c.ReadFromUDPAddrPort(buf)
	if err != nil {
		m.t.Fatalf("nothing arrived at %s: %v", vtep, err)
	}
	if want := map[bool]netip.Addr{true: local4, false: local6}[vtep.Is4()]; from.Addr() != want {
		m.t.Errorf("the outer source is %s, want %s", from.Addr(), want)
	}
	if n < 8 || buf[0] != 8 || binary.BigEndian.Uint32(buf[4:])>>8 != label {
		m.t.Fatalf("VXLAN header %x, want the VNI %d", buf[:min(n, 8)], label)
	}
	return buf[8:n]
}

// traffic sends both families over both families, both ways.
func (m *machine) traffic() {
	m.t.Helper()
	m.fromPeer(peer4, local4, in4("10.20.0.9", "10.10.0.5"))
	m.fromPeer(peer4, local4, in6("fd00:20::9", "fd00:10::5"))
	m.fromPeer(peer6, local6, in4("10.26.0.9", "10.10.0.5"))
	m.fromPeer(peer6, local6, in6("fd00:26::9", "fd00:10::5"))
	m.fromOVS(peer4, 5001, out4("10.10.0.5", "10.20.0.9"))
	m.fromOVS(peer4, 5001, out6("fd00:10::5", "fd00:20::9"))
	m.fromOVS(peer6, 5006, out4("10.10.0.5", "10.26.0.9"))
	m.fromOVS(peer6, 5006, out6("fd00:10::5", "fd00:26::9"))
}

// hooks are all ways to attach. TestAttach tells which of them HookAuto is.
var hooks = []ebpf.Hook{ebpf.HookTCX, ebpf.HookClsact}

// Packets go through sluice-vxlan and sluice0, with the programs attached in
// each way, and nothing is dropped; also over the end of the process, a plain start
// and one that replaces the programs.
func TestDevices(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			m := newMachine(t, hook)
			m.start(1500)
			m.traffic()
			counted, drops := counts(t, m.d)
			for reason, n := range drops {
				if n > 0 {
					t.Errorf("%d packets were dropped for %v", n, reason)
				}
			}
			if counted.Packets != 8 {
				t.Errorf("%d packets were counted, want 8", counted.Packets)
			}
			m.d.Close()
			m.traffic()
			m.start(1500)
			m.traffic()
			m.d.Close()
			m.start(1400)
			m.traffic()
			m.onlyOne()
		})
	}
}

// onlyOne checks that each device has one program, and detaches it.
func (m *machine) onlyOne() {
	m.t.Helper()
	m.inside(m.node, func() error {
		for _, p := range ebpf.Programs() {
			if n := attachedPrograms(m.t, m.hook, m.devices[p]); n != 1 {
				m.t.Errorf("%d programs on the device of %s, want 1", n, p)
			}
			if err := m.d.Detach(p, m.devices[p]); err != nil {
				return err
			}
			if n := attachedPrograms(m.t, m.hook, m.devices[p]); n != 0 {
				m.t.Errorf("%d programs on the device of %s after detaching", n, p)
			}
		}
		return nil
	})
}
