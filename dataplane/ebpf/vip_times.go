package ebpf

import (
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// takeoverTime is how long OVN may have balanced a new VIP before eBPF does, in s, and for
// how long connections from then are seen as such. It is a multiple of what rows take to
// get here. A packet of such a connection makes it known as OVN's, until it is idle.
const takeoverTime = 120

// vipUntil is until when there may be flows to a VIP that began the other way: in OVN, or
// in eBPF. Where there were VRFs and no VIPs at the start, load balancing was off, and
// flows to VIPs of these VRFs were OVN's. A VIP that is new was OVN's for a moment.
func (s *store) vipUntil(vni intent.VNI, old bpfVip, had bool, row bpfVip) (uint32, error) {
	const ovn = uint16(bpfVipFlagsVIP_OVN)
	now, err := monotonic()
	switch {
	case had && (old.Flags^row.Flags)&ovn == 0:
		return old.Until, nil
	case !had && (row.Flags&ovn != 0 || s.follows.Load()):
		return 0, nil
	case !had && (!s.lb.first || !s.vrfs.since(vni).IsZero()):
		return now + takeoverTime, err
	}
	return now + flowIdle, err
}

// begin tells whether the VIPs that come still are the first ones.
func (b *balancing) begin() {
	if b.began.IsZero() {
		b.began = b.now()
	}
	b.first = b.first && b.now().Sub(b.began) < vipsSettle
}

// settleTime is within which the rows of something new are written, vipsSettle those of all
// VIPs, when balancing is switched on. A route that comes later counts as one that has come
// from another node: the connections that it brings would break else, while what is taken for
// one of them in vain is mended by its client's next packet.
const (
	settleTime = time.Second
	vipsSettle = 10 * time.Second
)

// birth is when the first VIP of an address came, zero if that was in another process, and how
// many it has.
type birth struct {
	at   time.Time
	vips int
}

func (b *balancing) bear(k intent.VIPKey, at time.Time) {
	host := intent.NewHostKey(k.VNI, k.Addr)
	is, had := b.born[host]
	if !had {
		is.at = at
	}
	is.vips++
	b.born[host] = is
}

func (b *balancing) unborn(k intent.VIPKey) {
	host := intent.NewHostKey(k.VNI, k.Addr)
	is := b.born[host]
	if is.vips--; is.vips > 0 {
		b.born[host] = is
	} else {
		delete(b.born, host)
	}
}

// vipComes is told of the route of an address with VIPs before it is written. Where the
// VIPs were there before, or the VRF was not, the address has come from another node,
// and its flows with it.
func (s *store) vipComes(k intent.RouteKey) {
	recent := func(t time.Time) bool { return s.lb.now().Sub(t) < settleTime }
	if !recent(s.lb.born[k].at) || recent(s.vrfs.since(k.VNI)) || s.follows.Load() {
		s.vrfs.claim(k.VNI)
	}
}

// Moved is told of VRFs whose gateway ports go to other nodes or come from there, before their
// routes change. Connections that begin elsewhere come with a port; and one that is back before
// its routes have been written, seconds later on a node that is slow, shows in no route.
func (v *VRFs) Moved(vnis map[intent.VNI]bool) {
	if len(vnis) == 0 {
		return // most steps: do not wait for rows that are being written
	}
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	for vni := range vnis {
		v.s.vrfs.moved(vni)
	}
}
