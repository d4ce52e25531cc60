package wire

import (
	"slices"
	"testing"
)

// BenchmarkUpdate is what an UPDATE costs before the server reads it: with one route, as GoBGP
// and Sluice send them, and with a hundred, as FRR does; of them half are of Type 2 in the
// last.
func BenchmarkUpdate(b *testing.B) {
	communities := attr(0xc0, 16, slices.Concat([]byte{0, 2, 0xfc, 0, 0, 0, 3, 0xe9}, []byte{3, 12, 0, 0, 0, 0, 0, 8}, []byte{6, 3, 2, 0, 0, 0, 0, 7})...)
	for _, bb := range []struct {
		name          string
		fives, others int
	}{{"one", 1, 0}, {"hundred", 100, 0}, {"mixed", 50, 50}} {
		var nlri [][]byte
		for i := range bb.fives {
			nlri = append(nlri, five4(byte(i)))
		}
		for i := range bb.others {
			nlri = append(nlri, nlriOf(2, 33, byte(i)))
		}
		for name, msg := range map[string][]byte{
			"announced": messageOf(typeUpdate, body(nil, nil, origin, path, pref, communities, reachOf(evpn, hop4, nlri...))),
			"withdrawn": messageOf(typeUpdate, body(nil, nil, unreachOf(evpn, nlri...))),
		} {
			b.Run(bb.name+"/"+name, func(b *testing.B) {
				out := make([]byte, 0, 2*maxMessage)
				b.ReportAllocs()
				for b.Loop() {
					out, _, _ = all.In(out[:0], msg)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bb.fives+bb.others), "ns/route")
			})
		}
	}
}
