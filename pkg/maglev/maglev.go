package maglev

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"
)

const (
	// Seed is XXH64's seed in all tables: "sluice" in ASCII, and 1. Nodes with another seed choose other backends.
	Seed uint64 = 0x736c_7569_6365_0001
	// MaxWeight is the largest weight, as in Octavia's API.
	MaxWeight = 256
	// MaxBackends is how many keys can have an index of 16 bits. Of these, no more than M may have a weight.
	MaxBackends = 65535
)

// sizes are the numbers of slots that a table can have, all of them primes.
var sizes = [...]int{1021, 4093, 16381, 65521}

// none is in a slot that is free. It is no index: those end at MaxBackends-1.
const none = 0xffff

// ErrNoBackend means that no backend has a weight, so that there is nothing to put into a table.
var ErrNoBackend = errors.New("no backend with a weight above 0")

// Backend is one of those that a table's flows are spread over.
type Backend struct {
	// Key is what the backend is called on all nodes, such as "192.0.2.1:80/tcp". Only its bytes count.
	Key string
	// Weight is its share in relation to the others': 0 to MaxWeight. With 0 it gets no slot.
	Weight uint16
}

// Table says which backend each slot belongs to.
type Table struct {
	// Keys are those of all backends in the order of their bytes, those with weight 0 too: draining a backend changes
	// no index.
	Keys []string
	// Slots has M indices into Keys. 65535 is never one.
	Slots []uint16
}

// Size says how many slots (M) the table of a number of backends has: configured unless that is 0, else the smallest of
// 1021, 4093, 16381 and 65521 that is at least 100 times the backends, else 65521. The error is of a configured size
// that is none of these four. For a size that no node's view of health alters, backends counts the dead ones too.
func Size(backends, configured int) (int, error) {
	if configured != 0 {
		return configured, checkSize(configured)
	}
	for _, m := range sizes {
		if m >= 100*backends {
			return m, nil
		}
	}
	return sizes[len(sizes)-1], nil
}

func checkSize(m int) error {
	if !slices.Contains(sizes[:], m) {
		return fmt.Errorf("a table of %d slots: the sizes are %v", m, sizes)
	}
	return nil
}

// Build makes the table of the backends, in any order, with size slots, which is one of Size's numbers.
//
// It is an error if no backend has a weight (ErrNoBackend), if more have one than there are slots, if there are more
// than MaxBackends or a weight is above MaxWeight, and if a key is there twice: whether two rows of one backend add up or
// are a mistake is known to whoever read them.
func Build(backends []Backend, size int) (Table, error) {
	if err := checkSize(size); err != nil {
		return Table{}, err
	}
	if len(backends) > MaxBackends {
		return Table{}, fmt.Errorf("%d backends: there may be %d", len(backends), MaxBackends)
	}
	backends = slices.Clone(backends)
	slices.SortFunc(backends, func(a, b Backend) int { return cmp.Compare(a.Key, b.Key) })
	t := Table{Keys: make([]string, len(backends)), Slots: make([]uint16, size)}
	weighted := make([]turns, 0, len(backends))
	for i, b := range backends {
		if i > 0 && b.Key == backends[i-1].Key {
			return Table{}, fmt.Errorf("backend %s is there twice", b.Key)
		}
		if b.Weight > MaxWeight {
			return Table{}, fmt.Errorf("backend %s has weight %d: the largest is %d", b.Key, b.Weight, MaxWeight)
		}
		t.Keys[i] = b.Key
		if b.Weight > 0 {
			weighted = append(weighted, newTurns(uint16(i), b, uint32(size)))
		}
	}
	switch n := len(weighted); {
	case n == 0:
		return Table{}, ErrNoBackend
	case n > size:
		return Table{}, fmt.Errorf("%d backends are too many for a table of %d slots", n, size)
	}
	fill(t.Slots, weighted)
	return t, nil
}

// turns is a backend while its table is filled.
type turns struct {
	index  uint16 // of its key
	weight uint16
	order  order
	next   uint32 // of order
}

func newTurns(index uint16, b Backend, size uint32) turns {
	return turns{index: index, weight: b.Weight, order: newOrder(b.Key, size)}
}

// take gives the backend its next free slot. There is one.
func (b *turns) take(slots []uint16) {
	for {
		slot := b.order.at(b.next)
		b.next++
		if slot < uint32(len(slots)) && slots[slot] == none {
			slots[slot] = b.index
			return
		}
	}
}

// order is the order in which a backend asks for slots: a permutation of the numbers of as
// many bits as a slot's has. Those that are no slot are left out.
type order struct {
	add    [2]uint32
	factor [2]uint32 // odd
	mask   uint32
	half   uint8 // of the bits
}

// lastFactor is of the last round of an order, 2^32 by the golden ratio, made odd.
const lastFactor = 0x9e37_79b1

func newOrder(key string, size uint32) order {
	h, n := hash(key), bits.Len32(size)
	return order{
		add: [2]uint32{uint32(h), uint32(h >> 16)}, factor: [2]uint32{uint32(h>>32) | 1, uint32(h>>48) | 1},
		mask: 1<<n - 1, half: uint8(n / 2),
	}
}

// at is place number i of the order. Each step can be undone, so no number is there twice.
func (o *order) at(i uint32) uint32 {
	i = (i + o.add[0]) * o.factor[0] & o.mask
	i ^= i >> o.half
	i = (i + o.add[1]) * o.factor[1] & o.mask
	i ^= i >> o.half
	i = i * lastFactor & o.mask
	return i ^ i>>o.half
}

// class is the backends of one weight. They have their turns in the same rounds.
type class struct {
	backends []turns
	// ahead is by how much their turns are more than the rounds give them: after r rounds the turns of one times the
	// largest weight, less r * weight.
	weight, ahead uint32
}

// classes sorts the backends by weight, the largest first, then by key, in place.
func classes(backends []turns) []class {
	slices.SortFunc(backends, func(a, b turns) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.index, b.index))
	})
	var out []class
	for first, i := 0, 1; i <= len(backends); i++ {
		if w := backends[first].weight; i == len(backends) || backends[i].weight != w {
			out = append(out, class{backends: backends[first:i], weight: uint32(w)})
			first = i
		}
	}
	return out
}

// fill gives every slot to a backend. There is at least one, and no weight is 0.
func fill(slots []uint16, backends []turns) {
	for i := range slots {
		slots[i] = none
	}
	classes := classes(backends)
	heaviest, left := classes[0].weight, len(slots)
	for left > 0 {
		for i := range classes {
			c := &classes[i]
			if c.ahead >= c.weight {
				c.ahead -= c.weight
				continue
			}
			c.ahead += heaviest - c.weight
			turn := c.backends[:min(left, len(c.backends))]
			for j := range turn {
				turn[j].take(slots)
			}
			left -= len(turn)
		}
	}
}

// Hash is equal for two tables exactly if both give every slot to the same key (but for one chance in 2^64): XXH64 with
// the seed Seed of M numbers of 64 bits, little-endian, one a slot: XXH64 of its backend's key with the same seed. So
// neither indices count nor keys that have no slot.
func (t Table) Hash() uint64 {
	keys := make([]uint64, len(t.Keys))
	for i, k := range t.Keys {
		keys[i] = hash(k)
	}
	var d xxhash.Digest
	d.ResetWithSeed(Seed)
	b := make([]byte, 0, 8*128)
	for part := range slices.Chunk(t.Slots, 128) {
		b = b[:0]
		for _, i := range part {
			b = binary.LittleEndian.AppendUint64(b, keys[i])
		}
		_, _ = d.Write(b)
	}
	return d.Sum64()
}

func hash(s string) uint64 {
	var d xxhash.Digest
	d.ResetWithSeed(Seed)
	_, _ = d.WriteString(s)
	return d.Sum64()
}
