package bfd

import (
	"net/netip"
	"testing"
	"time"
)

// peersOf are the node's five sessions of the interoperation tests: over one hop by
// IPv4, IPv6 and a link-local address, over two by IPv4 and IPv6.
func peersOf() []Peer {
	quick := Settings{MinTx: 100 * ms, MinRx: 100 * ms, Multiplier: 10}
	at := func(neighbor, local string, ttl uint8) Peer {
		p := Peer{Neighbor: netip.MustParseAddr(neighbor), Multihop: ttl > 0, MinTTL: ttl, Settings: quick}
		if local != "" {
			p.Local = netip.MustParseAddr(local)
		}
		return p
	}
	return []Peer{at(mid4, "", 0), at(mid6, node6, 0), at(midLink+"%eth0", "", 0), at(peer4, node4, 254), at(peer6, "", 254)}
}

func frrNeighbors(c *chain) (near, far *bfdd) {
	const timers = "\n  transmit-interval 100\n  receive-interval 150\n  detect-multiplier 10\n"
	near = startBFDD(c.t, c.mid, " peer "+node4+timers, " peer "+node6+timers, " peer "+nodeLink+" local-address "+midLink+" interface node"+timers)
	far = startBFDD(c.t, c.peer, " peer "+node4+" multihop local-address "+peer4+timers+"  minimum-ttl 254", " peer "+node6+" multihop local-address "+peer6+timers+"  minimum-ttl 254")
	return near, far
}

// FRR's bfdd and a speaker agree, notice a cut within the detection time, come back,
// and part in peace.
func TestFRR(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	near, far := frrNeighbors(c)
	s := startChild(t, c.node, peersOf()...)
	up := func() bool { return s.all(PathUp) && near.all("up") && far.all("up") }
	eventually(t, "all sessions are up", up)
	eventually(t, "the intervals are agreed on", func() bool {
		for _, e := range s.report().Sessions {
			if e.TxInterval != 150*ms || e.Detection != time.Second {
				return false
			}
		}
		return true
	})
	for _, p := range append(near.peers(), far.peers()...) {
		if p.RemoteTx != 100 || p.RemoteRx != 100 || p.RemoteMultiplier != 10 {
			t.Errorf("bfdd has %+v", p)
		}
	}

	c.cut()
	cut := time.Now()
	eventually(t, "the cut is noticed", func() bool { return s.all(PathLost) })
	for _, e := range s.report().Sessions {
		t.Logf("%s lost after %s: %s", e.Neighbor, e.Since.Sub(cut).Round(ms), e.Diagnostic)
		if e.Diagnostic != TimeExpired || e.Flaps != 1 || e.State == Up {
			t.Errorf("after the cut: %+v", e)
		}
	}
	eventually(t, "bfdd notices it too", func() bool { return near.all("down") && far.all("down") })
	c.mend()
	eventually(t, "all sessions are up again", up)

	s.stop()
	eventually(t, "bfdd has been told", func() bool { return near.all("down") && far.all("down") })
	for _, p := range append(near.peers(), far.peers()...) {
		if p.RemoteDiagnostic != "administratively down" {
			t.Errorf("bfdd was told %q", p.RemoteDiagnostic)
		}
	}
	s = startChild(t, c.node, peersOf()...)
	eventually(t, "a new process has sessions", up)
	_ = s.cmd.Process.Kill()
	eventually(t, "bfdd notices a killed process", func() bool { return near.all("down") && far.all("down") })
	s = startChild(t, c.node, peersOf()...)
	eventually(t, "the next one has sessions", up)
	far.kill()
	eventually(t, "a killed bfdd is noticed", func() bool { p := s.report().Sessions; return p[3].Path == PathLost && p[4].Path == PathLost })
	if p := s.report().Sessions; p[0].Path != PathUp || p[1].Path != PathUp || p[2].Path != PathUp {
		t.Errorf("the others: %+v", p)
	}
}
