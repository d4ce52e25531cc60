package bpf_test

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
)

// A packet from the fabric whose destination has moved on is sent after it, with
// one less in its TTL: once, and only from the endpoint behind which its source is.
func relays(t *testing.T, dir string, d *ebpf.Dataplane) {
	moved := addr("192.0.2.20")
	apply(t, d.Routes(), routes(
		remote(red, "10.50.0.0/24", hop(moved, 1001)), remote(red, "fd00:50::/64", hop(moved, 1001)),
		remote(red, "10.50.0.5/32", hop(moved, 1001)), remote(red, "fd00:50::5/128", hop(moved, 1001)),
		remote(red, "10.51.0.0/24", hop(peer6, 1001)), remote(red, "fd00:51::/64", hop(peer6, 1001)), remote(red, "10.52.0.0/24", hop(moved, 1001), hop(peer4b, 1001)),
		remote(red, "10.53.0.0/24", hop(peer4, 5001), hop(peer4b, 5002)),
	))
	on, six := forwarded(routerMAC, peerMAC), nextHopStep(moved, 1001)
	from6 := func(b []byte) ebpf.TraceRequest { return via(fromFabric(b), peer6, red) }
	last := func(eth layers.EthernetType, ip gopacket.SerializableLayer) []byte {
		return frame(ether(peerMAC, routerMAC, eth), ip, udp())
	}
	old4, old6 := ip4("10.20.0.9", "10.50.0.5", unix.IPPROTO_UDP), ip6("fd00:20::9", "fd00:50::5", unix.IPPROTO_UDP)
	old4.TTL, old6.HopLimit = 1, 1
	runRows(t, dir, d, []row{
		{name: "host 4", in: fromFabric(in4("10.20.0.9", "10.50.0.5")), out: vxlan, check: on, step: six},
		{name: "host 6", in: fromFabric(in6("fd00:20::9", "fd00:50::5")), out: vxlan, check: on, step: six},
		{name: "prefix 4", in: fromFabric(in4("10.20.0.8", "10.50.0.7")), out: vxlan, check: on, step: six},
		{name: "prefix 6", in: fromFabric(in6("fd00:20::8", "fd00:50::7")), out: vxlan, check: on, step: six},
		{name: "from IPv6", in: from6(in4("10.26.0.9", "10.50.0.5")), out: vxlan, check: on, step: six},
		{name: "to IPv6", in: fromFabric(in4("10.20.0.9", "10.51.0.5")), out: vxlan, check: on, step: nextHopStep(peer6, 1001)},
		{name: "source behind several", in: fromFabric(in4("10.53.0.9", "10.50.0.5")), out: vxlan, check: on, step: six},
		{name: "destination behind several", in: fromFabric(in4("10.20.0.9", "10.52.0.5")), out: vxlan, check: on},
		{name: "TTL used up 4", in: fromFabric(last(layers.EthernetTypeIPv4, old4)), drop: drop.TTLExpired, out: vxlan},
		{name: "TTL used up 6", in: fromFabric(last(layers.EthernetTypeIPv6, old6)), drop: drop.TTLExpired, out: vxlan},
		// The kernel fragments no tunnel's packet over IPv6, whatever the inner DF says.
		{name: "fits over IPv6 4", in: fromFabric(sized(in4, "10.20.0.9", "10.51.0.5", 1430)), out: vxlan, check: on},
		{name: "too big over IPv6 4", in: fromFabric(sized(in4, "10.20.0.9", "10.51.0.5", 1431)), drop: drop.TooBig},
		{name: "fits over IPv6 6", in: fromFabric(sized(in6, "fd00:20::9", "fd00:51::5", 1430)), out: vxlan, check: on},
		{name: "too big over IPv6 6", in: fromFabric(sized(in6, "fd00:20::9", "fd00:51::5", 1431)), drop: drop.TooBig},
		{name: "too big over IPv4", in: fromFabric(sized(in4, "10.20.0.9", "10.50.0.5", 1451)), out: vxlan, check: on},
		// What another gateway relayed, or somebody made up.
		{name: "source behind another endpoint 4", in: from6(in4("10.20.0.9", "10.50.0.5")), drop: drop.RelayRefused},
		{name: "source behind another endpoint 6", in: from6(in6("fd00:20::9", "fd00:50::5")), drop: drop.RelayRefused},
		{name: "source behind this node", in: fromFabric(in4("10.10.0.5", "10.50.0.5")), drop: drop.RelayRefused},
		{name: "source behind nobody", in: fromFabric(in6("fd00:99::9", "fd00:50::5")), drop: drop.RelayRefused},
		{name: "source behind several others", in: from6(in4("10.53.0.9", "10.50.0.5")), drop: drop.RelayRefused},
		{name: "another tenant's", in: via(fromFabric(in4("10.20.0.9", "10.50.0.5")), peer4, blue), drop: drop.NoRoute},
	})
}

// On a wire: the relayed packet has this node's outer source, the label and the
// router MAC of the new node, and comes whole.
func TestDevicesRelay(t *testing.T) {
	for _, hook := range hooks {
		t.Run(hook.String(), func(t *testing.T) {
			m := newMachine(t, hook)
			m.start(1500)
			apply(t, m.d.Routes(), routes(remote(red, "10.50.0.0/24", hop(peer6, 1001)), remote(red, "fd00:50::/64", hop(peer6, 1001))))
			for _, in := range [][]byte{in4("10.20.0.9", "10.50.0.5"), in6("fd00:20::9", "fd00:50::5")} {
				m.send(peer4, local4, in)
				m.atPeer(peer6, 1001, in)
			}
			m.onlyOnce()
		})
	}
}

// onlyOnce: a relayed packet leaves with fewer hops to go than any that was not, and one
// that comes so is not relayed, wherever its source is.
func (m *machine) onlyOnce() {
	m.t.Helper()
	const relayed = 32
	control := func(vtep netip.Addr, level, option, value int) {
		m.t.Helper()
		raw, err := m.peer[vtep].SyscallConn()
		if err != nil {
			m.t.Fatal(err)
		}
		if e := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), level, option, value) }); e != nil || err != nil {
			m.t.Fatal(errors.Join(e, err))
		}
	}
	control(peer6, unix.IPPROTO_IPV6, unix.IPV6_RECVHOPLIMIT, 1)
	in := in4("10.20.0.9", "10.50.0.5")
	m.send(peer4, local4, in)
	buf, oob := make([]byte, 2048), make([]byte, 64)
	_ = m.peer[peer6].SetReadDeadline(time.Now().Add(patience))
	_, n, _, _, err := m.peer[peer6].ReadMsgUDPAddrPort(buf, oob)
	if err != nil {
		m.t.Fatal(err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 || binary.NativeEndian.Uint32(messages[0].Data) != relayed {
		m.t.Errorf("a relayed packet has the control messages %v, want a hop limit of %d: %v", messages, relayed, err)
	}
	refused := func() uint64 {
		drops, err := m.d.Reader().Drops()
		if err != nil {
			m.t.Fatal(err)
		}
		return drops[drop.RelayRefused]
	}
	for hops, want := range map[int]uint64{relayed: 1, relayed - 2: 1, relayed + 1: 0} {
		before := refused()
		control(peer4, unix.IPPROTO_IP, unix.IP_TTL, hops)
		m.send(peer4, local4, in)
		if want == 0 {
			m.atPeer(peer6, 1001, in)
		}
		for end := time.Now().Add(patience); refused() != before+want && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		if got := refused() - before; got != want {
			m.t.Errorf("with %d hops to go %d packets are refused, want %d", hops, got, want)
		}
	}
}
