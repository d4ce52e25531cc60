package maglev

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// Whatever the key, an order has every number once.
func TestOrder(t *testing.T) {
	for _, size := range sizes {
		for i := range 200 {
			o := newOrder(fmt.Sprint("key", i), uint32(size))
			seen := make([]bool, o.mask+1)
			for j := range seen {
				slot := o.at(uint32(j))
				if seen[slot] {
					t.Fatalf("key %d: %d of %d slots comes twice", i, slot, size)
				}
				seen[slot] = true
			}
		}
	}
}

func TestSize(t *testing.T) {
	for _, tt := range []struct {
		backends, configured, want int
	}{
		{0, 0, 1021}, {10, 0, 1021}, {11, 0, 4093}, {40, 0, 4093}, {41, 0, 16381}, {163, 0, 16381}, {164, 0, 65521}, {655, 0, 65521},
		{656, 0, 65521}, {MaxBackends, 0, 65521}, {1, 65521, 65521}, {1000, 1021, 1021}, {1, 4093, 4093}, {1, 16381, 16381},
	} {
		if got, err := Size(tt.backends, tt.configured); got != tt.want || err != nil {
			t.Errorf("%d backends, configured %d: %d, %v; want %d", tt.backends, tt.configured, got, err, tt.want)
		}
	}
	for _, configured := range []int{-1, 1, 1020, 1022, 65537} {
		if _, err := Size(1, configured); err == nil {
			t.Errorf("%d was taken", configured)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	for _, tt := range []struct {
		backends []Backend
		size     int
		want     string
	}{
		{equal(1, 1), 1024, "a table of 1024 slots: the sizes are [1021 4093 16381 65521]"},
		{nil, 1021, ErrNoBackend.Error()},
		{equal(3, 0), 1021, ErrNoBackend.Error()},
		{[]Backend{{"b", 1}, {"a", 2}, {"b", 0}}, 1021, "backend b is there twice"},
		{[]Backend{{"a", 257}}, 1021, "backend a has weight 257: the largest is 256"},
		{equal(1022, 1), 1021, "1022 backends are too many for a table of 1021 slots"},
		{equal(65536, 0), 65521, "65536 backends: there may be 65535"},
	} {
		if got, err := Build(tt.backends, tt.size); err == nil || err.Error() != tt.want || got.Slots != nil {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	if _, err := Build(nil, 1021); !errors.Is(err, ErrNoBackend) {
		t.Error(err)
	}
}

// Every slot can have a backend of its own, and the largest index is one.
func TestBuildMost(t *testing.T) {
	backends := equal(MaxBackends, 1)
	for i := range MaxBackends - 65521 {
		backends[i].Weight = 0
	}
	table := build(t, backends, 65521)
	for i, n := range counts(table) {
		if n != int(backends[i].Weight) {
			t.Fatalf("%s has %d slots", table.Keys[i], n)
		}
	}
}

func TestAnyOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	backends := weighted(r, 50)
	given := slices.Clone(backends)
	want := build(t, backends, 16381)
	if !slices.Equal(backends, given) {
		t.Error("Build altered what it was given")
	}
	for range 10 {
		r.Shuffle(len(backends), func(i, j int) { backends[i], backends[j] = backends[j], backends[i] })
		if got := build(t, backends, 16381); !slices.Equal(got.Keys, want.Keys) || !slices.Equal(got.Slots, want.Slots) {
			t.Fatal("another table")
		}
	}
}

func TestBalance(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 100, 1000, 1021} {
		for _, size := range sizes {
			slots := counts(build(t, equal(n, 7), size))
			if least, most := slices.Min(slots), slices.Max(slots); most-least > 1 {
				t.Errorf("%d backends in %d slots have %d to %d", n, size, least, most)
			}
		}
	}
}

func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, n := range []int{1, 2, 3, 10, 100, 1000} {
		size, _ := Size(n, 0)
		light := equal(n, 1)
		light[n/2].Weight = MaxWeight
		heavy := equal(n, MaxWeight)
		heavy[n/2].Weight = 1
		for _, backends := range [][]Backend{light, heavy, weighted(r, n), weighted(r, n)} {
			checkWeights(t, backends, build(t, backends, size))
		}
	}
}

// checkWeights is the promise of the package about weights.
func checkWeights(t *testing.T, backends []Backend, table Table) {
	t.Helper()
	slots := map[string]int{}
	for _, i := range table.Slots {
		slots[table.Keys[i]]++
	}
	sum, n := 0, 0
	for _, b := range backends {
		sum += int(b.Weight)
		n += min(1, int(b.Weight))
	}
	size := float64(len(table.Slots))
	for _, b := range backends {
		part, got := float64(b.Weight)/float64(sum), float64(slots[b.Key])
		switch {
		case b.Weight == 0 && got > 0, b.Weight > 0 && got == 0:
			t.Errorf("%s: weight %d, %v slots", b.Key, b.Weight, got)
		case b.Weight > 0 && (got <= part*(size-float64(n))-1 || got >= part*size+2):
			t.Errorf("%s: %v slots, its share is %.1f", b.Key, got, part*size)
		}
	}
}

// Only ratios count.
func TestWeightRatios(t *testing.T) {
	a, b := equal(10, 1), equal(10, 100)
	a[3].Weight, b[3].Weight = 2, 200
	if !slices.Equal(build(t, a, 1021).Slots, build(t, b, 1021).Slots) {
		t.Error("weights 1 and 2 make another table than 100 and 200")
	}
}

func TestHash(t *testing.T) {
	backends := []Backend{{"a", 1}, {"b", 1}, {"c", 1}}
	want := build(t, backends, 1021).Hash()
	if got := build(t, append([]Backend{{"0", 0}}, backends...), 1021).Hash(); got != want {
		t.Error("a backend without slots altered the hash")
	}
	for name, other := range map[string]Table{
		"another key with the same slots": {Keys: []string{"a", "b", "d"}, Slots: build(t, backends, 1021).Slots},
		"another size":                    build(t, backends, 4093),
		"another weight":                  build(t, []Backend{{"a", 1}, {"b", 1}, {"c", 2}}, 1021),
	} {
		if other.Hash() == want {
			t.Error(name)
		}
	}
}

func TestBuildAsDocumented(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 2, 7, 100, 1000} {
		for _, size := range sizes {
			backends := weighted(r, n)
			if !slices.Equal(keys(build(t, backends, size)), documented(backends, size)) {
				t.Errorf("%d backends in %d slots: another table than the documented one", n, size)
			}
		}
	}
}

// FuzzBuild takes four bytes for a backend: its key and its weight.
func FuzzBuild(f *testing.F) {
	f.Add([]byte("a\x00\x00\x01b\x00\x00\x02"), uint8(0))
	f.Add([]byte("a\x00\x01\x00b\x00\x00\x00c\x00\x00\x07"), uint8(1))
	f.Add([]byte("a\x00\x00\x01a\x00\x00\x02"), uint8(0))
	f.Add([]byte("a\x00\x01\x01"), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, which uint8) {
		size := sizes[int(which)%len(sizes)]
		raw = raw[:min(len(raw), 4*2000)]
		var backends []Backend
		seen, wrong, n := map[string]bool{}, false, 0
		for ; len(raw) >= 4; raw = raw[4:] {
			b := Backend{Key: string(raw[:2]), Weight: (uint16(raw[2])<<8 | uint16(raw[3])) % (MaxWeight + 2)}
			wrong = wrong || seen[b.Key] || b.Weight > MaxWeight
			seen[b.Key] = true
			n += min(1, int(b.Weight))
			backends = append(backends, b)
		}
		table, err := Build(backends, size)
		if (err != nil) != (wrong || n == 0 || n > size) {
			t.Fatal(err)
		}
		if err != nil {
			return
		}
		checkWeights(t, backends, table)
		if !slices.Equal(keys(table), documented(backends, size)) {
			t.Error("another table than the documented one")
		}
		slices.Reverse(backends)
		if other, err := Build(backends, size); err != nil || other.Hash() != table.Hash() {
			t.Errorf("another table in another order: %v", err)
		}
	})
}

// documented is the key of every slot, as doc.go has it, without regard to time.
func documented(backends []Backend, size int) []string {
	backends = slices.Clone(backends)
	slices.SortFunc(backends, func(a, b Backend) int {
		return cmp.Or(int(b.Weight)-int(a.Weight), strings.Compare(a.Key, b.Key))
	})
	heaviest := backends[0].Weight
	after := func(round, weight int) int { return (round*weight + int(heaviest) - 1) / int(heaviest) }
	table, next, left := make([]*Backend, size), make([]uint64, len(backends)), size
	for round := 1; ; round++ {
		for i, b := range backends {
			if after(round, int(b.Weight)) == after(round-1, int(b.Weight)) {
				continue
			}
			d := xxhash.NewWithSeed(Seed)
			_, _ = d.WriteString(b.Key)
			slot := size
			for ; slot >= size || table[slot] != nil; next[i]++ {
				slot = mix(d.Sum64(), next[i], map[int]uint64{1021: 10, 4093: 12, 16381: 14, 65521: 16}[size])
			}
			table[slot] = &backends[i]
			if left--; left == 0 {
				out := make([]string, size)
				for slot, b := range table {
					out[slot] = b.Key
				}
				return out
			}
		}
	}
}

// mix is that of doc.go, with n bits.
func mix(h, i, n uint64) int {
	mask, half := uint64(1)<<n-1, n/2
	i = (i + h) * (h>>32 | 1) & mask
	i ^= i >> half
	i = (i + (h >> 16)) * (h>>48 | 1) & mask
	i ^= i >> half
	i = i * 0x9e3779b1 & mask
	return int(i ^ i>>half)
}

func build(tb testing.TB, backends []Backend, size int) Table {
	tb.Helper()
	table, err := Build(backends, size)
	if err != nil {
		tb.Fatal(err)
	}
	return table
}

// equal is n backends in the order of their keys.
func equal(n int, weight uint16) []Backend {
	out := make([]Backend, n)
	for i := range out {
		out[i] = Backend{fmt.Sprintf("10.0.%03d.%03d:8080/tcp", i/256, i%256), weight}
	}
	return out
}

func weighted(r *rand.Rand, n int) []Backend {
	out := equal(n, 1)
	for i := range out {
		out[i].Weight = uint16(r.IntN(MaxWeight + 1))
	}
	out[n/2].Weight = max(1, out[n/2].Weight)
	return out
}

// keys is the key of every slot.
func keys(t Table) []string {
	out := make([]string, len(t.Slots))
	for slot, i := range t.Slots {
		out[slot] = t.Keys[i]
	}
	return out
}

// counts is how many slots each key has.
func counts(t Table) []int {
	out := make([]int, len(t.Keys))
	for _, i := range t.Slots {
		out[i]++
	}
	return out
}
