package maglev

import (
	"fmt"
	"strings"
	"testing"
)

// The values of this file are part of the interface between nodes: a build that changes one moves nearly all flows
// that have no entry, while nodes of both builds run. They were made from doc.go by another program.

func TestGoldenPermutation(t *testing.T) {
	for _, tt := range []struct {
		key          string
		offset, skip [len(sizes)]uint32
	}{
		{"192.0.2.1:80/tcp", [...]uint32{651, 2234, 8819, 58426}, [...]uint32{387, 555, 2787, 2787}},
		{"192.0.2.2:80/tcp", [...]uint32{688, 3714, 2147, 2902}, [...]uint32{247, 1207, 13867, 30247}},
		{"[2001:db8::1]:53/udp", [...]uint32{798, 2618, 13098, 61690}, [...]uint32{803, 1019, 1823, 18203}},
		{"[2001:db8:1111:2222:3333:4444:5555:6666]:8080/tcp", [...]uint32{1010, 3026, 12925, 58845}, [...]uint32{178, 1306, 838, 17218}},
	} {
		for i, size := range sizes {
			got := newTurns(0, Backend{tt.key, 1}, uint32(size))
			if got.slot != tt.offset[i] || got.skip != tt.skip[i] {
				t.Errorf("%s in %d slots: offset %d, skip %d; want %d, %d", tt.key, size, got.slot, got.skip, tt.offset[i], tt.skip[i])
			}
		}
	}
}

func TestGoldenTable(t *testing.T) {
	table := build(t, []Backend{{"[2001:db8::1]:80/tcp", 2}, {"192.0.2.2:80/tcp", 1}, {"192.0.2.1:80/tcp", 1}}, 1021)
	const want = "" +
		"1020222110011022200202221121112222002022210211222200020122102112202000221220011222202022211201112221" +
		"0202221100112222002022211211120220020222102112222000201220021122222002212201112221020222110011022210" +
		"2022211011122220020222102112222200202221021122020002212200212222220222122011122210202221100110222002" +
		"0222112111202200202221021122220002012210211222220022122001122210202221120111222102022211011122220020" +
		"2221021112222002022210211220200021122002122222200221220111222102022211001102221020222112111202200202" +
		"2210211222220020222102112222000221220011222002022212201112221020222110011022200202221121112222002022" +
		"2102112202000201221021122222002212201112221020222110011122210202221101112022002022210211122220020222" +
		"1021122220002212200212220220222122011122210202221100110222102022211211122220020222102112202000201221" +
		"0211222200022122001122220202221120111222102022211001120220020222112111222200202221021122220002012210" +
		"2112202200221220111222102022211001112221020222110111222200202221021122022002022210211222200022122002" +
		"122222202221220111222"
	var got strings.Builder
	for _, i := range table.Slots {
		fmt.Fprint(&got, i)
	}
	if got.String() != want {
		t.Errorf("slots %s", got.String())
	}
	if h := table.Hash(); h != 0xab1824b9062a2f4c {
		t.Errorf("hash %#x", h)
	}
}

func TestGoldenHash(t *testing.T) {
	for _, tt := range []struct {
		backends, size int
		weight         func(int) int
		want           uint64
	}{
		{10, 1021, func(int) int { return 1 }, 0xfc04529f54a5b87d},
		{40, 4093, func(int) int { return 1 }, 0x9279b53b9f495762},
		{100, 16381, func(i int) int { return i % 7 }, 0xeb21a075715612a8},
		{1000, 65521, func(i int) int { return 1 + i%256 }, 0xb23753cc36eff090},
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
