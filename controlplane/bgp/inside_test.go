package bgp

import (
	"math/rand"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// TestInside: whatever came and went, exactly the ghosts within a prefix are
// marked that are longer.
func TestInside(t *testing.T) {
	for seed := range int64(4) {
		rnd := rand.New(rand.NewSource(seed))
		random := func() netip.Prefix {
			if rnd.Intn(2) == 0 {
				return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(rnd.Intn(4)), byte(rnd.Intn(8)), byte(rnd.Intn(256))}), rnd.Intn(33)).Masked()
			}
			a := netip.MustParseAddr("2001:db8::").As16()
			a[5], a[15] = byte(rnd.Intn(8)), byte(rnd.Intn(256))
			return netip.PrefixFrom(netip.AddrFrom16(a), rnd.Intn(129)).Masked()
		}
		r := newRIB(notOwn, 0, 1)
		var all []netip.Prefix
		for range 1500 {
			if len(all) > 0 && rnd.Intn(3) == 0 {
				i := rnd.Intn(len(all))
				r.exorcise(intent.RouteKey{VNI: 1, Prefix: all[i]}, epoch)
				all = append(all[:i], all[i+1:]...)
			}
			p := random()
			if r.ghosts.rows[1][p] == nil {
				lost := testPath(p.String(), "192.0.2.1")
				if r.vteps[lost.hop.VTEP] == nil {
					r.vteps[lost.hop.VTEP] = &vtep{}
				}
				r.appear(intent.RouteKey{VNI: 1, Prefix: p}, lost, epoch)
				all = append(all, p)
			}
			cover := random()
			clear(r.dirty)
			r.unmask(intent.RouteKey{VNI: 1, Prefix: cover})
			want := 0
			for q := range r.ghosts.rows[1] {
				_, marked := r.dirty[intent.RouteKey{VNI: 1, Prefix: q}]
				within := q.Bits() > cover.Bits() && cover.Contains(q.Addr())
				if marked != within {
					t.Fatalf("seed %d: %s within %s: %t, marked: %t", seed, q, cover, within, marked)
				}
				want += boolean(within)
			}
			if len(r.dirty) != want {
				t.Fatalf("seed %d: %d marked, want %d", seed, len(r.dirty), want)
			}
		}
		for _, p := range all {
			r.exorcise(intent.RouteKey{VNI: 1, Prefix: p}, epoch)
		}
		if len(r.ghosts.rows)+len(r.ghosts.inside) != 0 {
			t.Errorf("left over: %v", r.ghosts)
		}
	}
}
