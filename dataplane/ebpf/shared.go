package ebpf

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// sharedWords is the memory of an array map that is mapped into this process: what
// is written to it the programs see without a call to the kernel.
type sharedWords struct{ words []uint64 }

const (
	wordBytes = 8
	// rowWords is the length of a row of a front.
	rowWords = 4
)

// A row of another length does not compile.
var (
	_ [rowWords * wordBytes]byte = [unsafe.Sizeof(bpfRouteFront{})]byte{}
	_ [rowWords * wordBytes]byte = [unsafe.Sizeof(bpfVrfFront{})]byte{}
)

// shareWords maps an array. Its memory is let go of when nothing refers to it.
func shareWords(m *ebpf.Map) (*sharedWords, error) {
	// The kernel pads each row to words.
	row := (int(m.ValueSize()) + wordBytes - 1) / wordBytes
	n := int(m.MaxEntries()) * row
	memory, err := unix.Mmap(m.FD(), 0, n*wordBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("share memory: %w", err)
	}
	s := &sharedWords{unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), n)}
	runtime.AddCleanup(s, func(b []byte) { _ = unix.Munmap(b) }, memory)
	return s, nil
}

// frontRow is a row of a front, which begins with the word that says whose it is.
type frontRow interface{ bpfRouteFront | bpfVrfFront }

// sharedRows are the rows of a front.
type sharedRows[R frontRow] struct{ *sharedWords }

func shareRows[R frontRow](m *ebpf.Map) (sharedRows[R], error) {
	s, err := shareWords(m)
	return sharedRows[R]{s}, err
}

func (s sharedRows[R]) row(slot uint32) []uint64 {
	return s.words[int(slot)*rowWords:][:rowWords]
}

// read needs no order: this process is the only one that writes.
func (s sharedRows[R]) read(slot uint32) R {
	defer runtime.KeepAlive(s.sharedWords)
	return *(*R)(unsafe.Pointer(&s.row(slot)[0]))
}

// write writes the first word of a row last: it publishes the others. hide makes
// the row say nothing meanwhile, as one has to that becomes another's.
//
// Each word is an atomic store. In Go those have one order that all see: none is
// seen before the one that precedes it. Plain stores have no order on arm64, where
// a program could see the new first word with the old route behind it, and send a
// packet to the next hop of another prefix.
func (s sharedRows[R]) write(slot uint32, r R, hide bool) {
	defer runtime.KeepAlive(s.sharedWords)
	var w [rowWords]uint64
	*(*R)(unsafe.Pointer(&w)) = r
	row := s.row(slot)
	if hide {
		atomic.StoreUint64(&row[0], 0)
	}
	for i := len(w) - 1; i >= 0; i-- {
		atomic.StoreUint64(&row[i], w[i])
	}
}
