package maglev

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// The values of this file are part of the interface between nodes: a build that changes one moves nearly all flows
// that have no entry, while nodes of both builds run. They were made from doc.go by another program.

// TestGoldenPermutation has the first slots of each permutation.
func TestGoldenPermutation(t *testing.T) {
	for _, tt := range []struct {
		key   string
		first [len(sizes)][4]uint32
	}{
		{"192.0.2.1:80/tcp", [...][4]uint32{{731, 905, 995, 126}, {1688, 1682, 2388, 1781}, {1658, 11682, 5965, 6699}, {56904, 6679, 22832, 38878}}},
		{"192.0.2.2:80/tcp", [...][4]uint32{{695, 108, 904, 738}, {3335, 643, 2222, 682}, {2773, 2028, 4062, 9788}, {27506, 58955, 15590, 11361}}},
		{"[2001:db8::1]:53/udp", [...][4]uint32{{90, 769, 546, 270}, {796, 553, 3627, 3024}, {13871, 9956, 11945, 2305}, {8796, 11741, 65459, 28702}}},
		{"[2001:db8:1111:2222:3333:4444:5555:6666]:8080/tcp", [...][4]uint32{{564, 202, 862, 59}, {3380, 1351, 200, 3494}, {11852, 16084, 2113, 5156}, {19653, 1802, 23114, 60921}}},
	} {
		for i, size := range sizes {
			o := newOrder(tt.key, uint32(size))
			var got []uint32
			for j := uint32(0); len(got) < len(tt.first[i]); j++ {
				if slot := o.at(j); slot < uint32(size) {
					got = append(got, slot)
				}
			}
			if !slices.Equal(got, tt.first[i][:]) {
				t.Errorf("%s in %d slots begins with %d; want %d", tt.key, size, got, tt.first[i])
			}
		}
	}
}

func TestGoldenTable(t *testing.T) {
	table := build(t, []Backend{{"[2001:db8::1]:80/tcp", 2}, {"192.0.2.2:80/tcp", 1}, {"192.0.2.1:80/tcp", 1}}, 1021)
	const want = "" +
		"0222020010121121210221200201002120202122222200112102222022111202112221222212200121011002011222112210" +
		"2220202211222020022122212100102210212020222220112222222122221202102202210221212221022222101221200021" +
		"1200110220200102222120211201012012222122222222220122021101112200200120102112120021200102022021220022" +
		"0122011122122222221122020202002120202220212221011221220202100100122200201020101122210121222022122021" +
		"2212022220121110100021212220120220200102020201122212022020122222201222200221211202012221212202202022" +
		"1011201022021212201102112122222211002122002102101201110222112121202121122222221202020212222000212201" +
		"0220102022022121201222010221222110101222102212000012222021002011222122021222122022221002201122211121" +
		"0011020022100121201112022002002012202012021221001122200222022222012011222202220121221210110001102020" +
		"0022222222202102220222102210222220122200022021211100222122220112220211220100221212021220220201021120" +
		"2202102112010202122221212212220202012222201221022220222212022220222222122212111110120201202220002102" +
		"112221222110202111011"
	var got strings.Builder
	for _, i := range table.Slots {
		fmt.Fprint(&got, i)
	}
	if got.String() != want {
		t.Errorf("slots %s", got.String())
	}
	if h := table.Hash(); h != 0xa7341a707a3cdf15 {
		t.Errorf("hash %#x", h)
	}
}

func TestGoldenHash(t *testing.T) {
	for _, tt := range []struct {
		backends, size int
		weight         func(int) int
		want           uint64
	}{
		{10, 1021, func(int) int { return 1 }, 0x47689365c9d726cc},
		{40, 4093, func(int) int { return 1 }, 0x2d4972f963b9d4fe},
		{100, 16381, func(i int) int { return i % 7 }, 0x1746d6fa65a8957b},
		{1000, 65521, func(i int) int { return 1 + i%256 }, 0x93083fbbde7bac21},
	} {
		backends := equal(tt.backends, 0)
		for i := range backends {
			backends[i].Weight = uint16(tt.weight(i))
		}
		if got := build(t, backends, tt.size).Hash(); got != tt.want {
			t.Errorf("%d backends in %d slots: hash %#x, want %#x", tt.backends, tt.size, got, tt.want)
		}
	}
}
