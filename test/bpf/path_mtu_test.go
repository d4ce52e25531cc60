package bpf_test

import (
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"github.com/ovn-sluice/sluice/pkg/drop"
)

// A VTEP whose path takes less than the underlay has an MTU of its own, over IPv4 and IPv6;
// the others keep theirs. Another set of paths takes the place of the one before, also by
// another process once it knows all VTEPs, and none is as before.
func TestPathMTU(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	four4 := func(dst string, size int) row { return row{in: fromOVN(sized(out4, "10.10.0.5", dst, size))} }
	six4 := func(size int) row { return row{in: fromOVN(sized(out6, "fd00:10::5", "fd00:20::9", size))} }
	noDF := func(dst string, size int) row {
		return row{in: fromOVN(frame(ether(gwMAC, nextHopMAC, layers.EthernetTypeIPv4), ip4("10.10.0.5", dst, layers.IPProtocolUDP), udp(), gopacket.Payload(make([]byte, size-28))))}
	}
	fits := func(name string, r row) row { r.name, r.out = name+" fits", vxlan; return r }
	refused := func(name string, r row, mtu uint32) row {
		r.name, r.drop, r.out = name+" is too big", drop.TooBig, lo
		r.check = icmp("172.24.4.254", "10.10.0.5", 3, 4, mtu, nextHopMAC, gwMAC)
		return r
	}
	refused6 := func(name string, r row, mtu uint32) row {
		r = refused(name, r, mtu)
		r.check = icmp("2001:db8:24::fe", "fd00:10::5", 2, 0, mtu, nextHopMAC, gwMAC)
		return r
	}
	runRows(t, dir, d, []row{
		{name: "ARP", in: fromOVN(arp("172.24.4.10", "172.24.4.254", 1)), out: lo},
		{name: "NS", in: fromOVN(solicit("2001:db8:24::10", "ff02::1:ff00:fe", "2001:db8:24::fe", 255)), out: lo},
		fits("before", four4("10.20.0.9", 1450)),
	})
	set := func(mtus map[netip.Addr]int) {
		t.Helper()
		if err := d.SetPathMTUs(mtus, true); err != nil {
			t.Fatal(err)
		}
	}
	set(map[netip.Addr]int{peer4: 1400, peer6: 1380, netip.MustParseAddr("192.0.2.200"): 1300})
	narrow := []row{
		fits("inner IPv4", four4("10.20.0.9", 1350)), refused("inner IPv4", four4("10.20.0.9", 1351), 1350),
		fits("inner IPv6", six4(1350)), refused6("inner IPv6", six4(1351), 1350),
		fits("over IPv6", four4("10.26.0.9", 1310)), refused("over IPv6", four4("10.26.0.9", 1311), 1310),
		fits("without DF", noDF("10.20.0.9", 1450)),
		// The kernel fragments no tunnel's packet over IPv6.
		fits("without DF over IPv6", noDF("10.26.0.9", 1310)), refused("without DF over IPv6", noDF("10.26.0.9", 1311), 1310),
	}
	runRows(t, dir, d, narrow)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = world(t, dir, node()) // as after a restart
	runRows(t, dir, d, narrow)
	// Before BGP is in sync not all VTEPs are known: rows come and shrink.
	for _, some := range []map[netip.Addr]int{nil, {peer4: 1450, peer6: 1500}, {netip.MustParseAddr("192.0.2.200"): 1480}} {
		if err := d.SetPathMTUs(some, false); err != nil {
			t.Fatal(err)
		}
		runRows(t, dir, d, narrow)
	}
	if err := d.SetPathMTUs(map[netip.Addr]int{peer4: 1390, netip.MustParseAddr("192.0.2.201"): 1370}, false); err != nil {
		t.Fatal(err)
	}
	runRows(t, dir, d, []row{
		fits("shrunk", four4("10.20.0.9", 1340)), refused("shrunk", four4("10.20.0.9", 1341), 1340),
		fits("as it was", four4("10.26.0.9", 1310)), refused("as it was", four4("10.26.0.9", 1311), 1310),
	})
	// A host takes no MTU below 1280 for true: up to there the packet is fragmented outside.
	set(map[netip.Addr]int{peer4: 1300})
	runRows(t, dir, d, []row{fits("least of IPv6", six4(1280)), refused6("more than that", six4(1281), 1280), refused("inner IPv4", four4("10.20.0.9", 1251), 1250)})
	set(map[netip.Addr]int{peer6: 1400, netip.MustParseAddr("192.0.2.200"): 9000})
	runRows(t, dir, d, []row{
		fits("another VTEP's", four4("10.20.0.9", 1450)), refused("underlay", four4("10.20.0.9", 1451), 1450),
		fits("wider", four4("10.26.0.9", 1330)), refused("wider", four4("10.26.0.9", 1331), 1330),
	})
	set(nil)
	runRows(t, dir, d, []row{fits("no row", four4("10.26.0.9", 1430)), refused("no row", four4("10.26.0.9", 1431), 1430)})
}
