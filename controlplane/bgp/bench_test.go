package bgp

import (
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// BenchmarkImportFlap is 10,000 prefixes withdrawn and announced again in the
// tables; one op is the whole flap.
func BenchmarkImportFlap(b *testing.B) {
	const n = 10_000
	r := newRIB(notOwn, time.Hour, time.Hour)
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, AutoImport: true}))
	var up, down []*path
	for i := range n {
		p := testPath("10.0.0.0/8", "192.0.2.1", "1:1001")
		p.prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)}), 32)
		p.key.addr, p.key.bits = p.prefix.Addr(), 32
		d := *p
		d.withdrawn = true
		up, down = append(up, p), append(down, &d)
	}
	for b.Loop() {
		for _, p := range up {
			r.apply(p, epoch)
			r.settle(epoch)
		}
		if len(r.routes[1001]) != n {
			b.Fatal("not imported")
		}
		for _, p := range down {
			r.apply(p, epoch)
			r.settle(epoch)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(2*n), "ns/route")
}

// BenchmarkUpdateToImport is one announcement from Update to the other node's
// Watch, with 20,000 announcements there: over a session between the two nodes,
// and through FRR as route reflector, which adds its own delay.
func BenchmarkUpdateToImport(b *testing.B) {
	b.Run("direct", func(b *testing.B) {
		cfg := nodeConfig(1, Neighbor{Address: netip.MustParseAddr("127.0.0.12"), ASN: 64512, Passive: true})
		cfg.ListenPort, cfg.ListenAddresses = int(freePort(b, "127.0.0.11")), []netip.Addr{netip.MustParseAddr("127.0.0.11")}
		a := startSpeaker(b, cfg)
		c := startSpeaker(b, nodeConfig(2, Neighbor{Address: netip.MustParseAddr("127.0.0.11"), ASN: 64512, Port: uint16(cfg.ListenPort),
			LocalAddress: netip.MustParseAddr("127.0.0.12"), ConnectRetry: time.Second}))
		updateToImport(b, a, c)
	})
	b.Run("reflected", func(b *testing.B) {
		rr := startFRR(b, 64512, v4, neighbor("127.0.0.11", 64512, client), neighbor("127.0.0.12", 64512, client))
		a := startSpeaker(b, nodeConfig(1, rr.neighborFor("127.0.0.1", 64512, "127.0.0.11")))
		c := startSpeaker(b, nodeConfig(2, rr.neighborFor("127.0.0.1", 64512, "127.0.0.12")))
		updateToImport(b, a, c)
	})
}

func updateToImport(b *testing.B, a, c *speaker) {
	c.do(childCommand{Policies: []childPolicy{red}})
	a.do(childCommand{Policies: []childPolicy{red}})
	eventually(b, "both are in sync", func() bool { return a.synced() && c.synced() })
	start := time.Now()
	a.do(childCommand{Fill: 20_000})
	set := time.Since(start)
	count := func() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.routes) }
	eventually(b, "all imported", func() bool { return count() == 20_000 })
	imported := time.Since(start)
	k := key(1001, "172.16.0.1/32")
	for b.Loop() {
		a.do(childCommand{Upserts: []intent.RouteKey{k}})
		for c.hops(k) == nil {
			time.Sleep(50 * time.Microsecond)
		}
		a.do(childCommand{Deletes: []intent.RouteKey{k}})
		for c.hops(k) != nil {
			time.Sleep(50 * time.Microsecond)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/2, "µs/change")
	b.ReportMetric(float64(set.Milliseconds()), "ms/set20k")
	b.ReportMetric(float64(imported.Milliseconds()), "ms/import20k")
}

// BenchmarkMany is 100,000 routes from one node's Update to the other node's Watch, over one
// session: the time, and the receiver's CPU time and memory.
func BenchmarkMany(b *testing.B) {
	const n = 100_000
	cfg := nodeConfig(1, Neighbor{Address: netip.MustParseAddr("127.0.0.12"), ASN: 64512, Passive: true})
	cfg.ListenPort, cfg.ListenAddresses = int(freePort(b, "127.0.0.11")), []netip.Addr{netip.MustParseAddr("127.0.0.11")}
	a := startSpeaker(b, cfg)
	receiving := nodeConfig(2, Neighbor{Address: netip.MustParseAddr("127.0.0.11"), ASN: 64512, Port: uint16(cfg.ListenPort),
		LocalAddress: netip.MustParseAddr("127.0.0.12"), ConnectRetry: time.Second})
	receiving.PeerLinger = -1
	c := startSpeaker(b, receiving)
	c.do(childCommand{Policies: []childPolicy{red}})
	a.do(childCommand{Policies: []childPolicy{red}})
	eventually(b, "both are in sync", func() bool { return a.synced() && c.synced() })
	count := func() int { c.mu.Lock(); defer c.mu.Unlock(); return len(c.routes) }
	for b.Loop() {
		_, _, before := c.usage()
		_, _, sender := a.usage()
		a.do(childCommand{Fill: n})
		eventually(b, "all imported", func() bool { return count() == n })
		_, most, after := c.usage()
		_, _, sent := a.usage()
		b.ReportMetric(float64((after-before).Microseconds())/n, "receiver-µs/route")
		b.ReportMetric(float64((sent-sender).Microseconds())/n, "sender-µs/route")
		b.ReportMetric(float64(most)/1024, "receiver-MB")
		a.do(childCommand{Set: []intent.RouteKey{}})
		eventually(b, "all gone", func() bool { return count() == 0 })
	}
}
