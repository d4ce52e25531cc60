package ebpf

import (
	"encoding/binary"
	"math/bits"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// backendFront writes the bits of backend_front, one for each backend, or for several.
// A bit stays when its backend goes, since flows that are known go on; it costs a look
// into flows for what the address sends from that port.
type backendFront struct {
	m     *ebpf.Map
	words []uint64
}

const (
	frontWord = 64
	// sparse is the share of bits, one in so many, with which a start clears those of no
	// backend: more of the packets of others would have one.
	sparse = 8
)

func newBackendFront(m *ebpf.Map) *backendFront {
	return &backendFront{m: m, words: make([]uint64, m.MaxEntries())}
}

// bit is backend_bit of bpf/lib/answer.h.
func (f *backendFront) bit(b bpfBackend) uint32 {
	high, low := binary.NativeEndian.Uint64(b.Addr[:]), binary.NativeEndian.Uint64(b.Addr[8:])
	head := uint64(b.Port)<<48 | uint64(b.Proto)<<32 | uint64(b.Scope)
	return frontHash(head, high, low) % uint32(len(f.words)*frontWord)
}

// adopt has a backend's bit set by settle.
func (f *backendFront) adopt(b bpfBackend) {
	bit := f.bit(b)
	f.words[bit/frontWord] |= 1 << (bit % frontWord)
}

// settle ends adoption. Words that are right are not touched.
func (f *backendFront) settle() error {
	have, set := make([]uint64, len(f.words)), 0
	_, err := pinned.Walk(f.m, func(row uint32, word uint64) {
		have[row] = word
		set += bits.OnesCount64(word | f.words[row])
	})
	if err != nil {
		return mapError(bpfMapBackendFrontV1, err)
	}
	for row, word := range f.words {
		if set <= len(f.words)*frontWord/sparse {
			word |= have[row]
		}
		if err := f.write(uint32(row), have[row], word); err != nil {
			return err
		}
	}
	return nil
}

// add goes before a backend gets flows.
func (f *backendFront) add(b bpfBackend) error {
	bit := f.bit(b)
	row := bit / frontWord
	return f.write(row, f.words[row], f.words[row]|1<<(bit%frontWord))
}

func (f *backendFront) write(row uint32, have, want uint64) error {
	if have != want {
		if err := f.m.Put(row, want); err != nil {
			return mapError(bpfMapBackendFrontV1, err)
		}
	}
	f.words[row] = want
	return nil
}
