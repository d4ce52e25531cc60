package ebpf

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"
)

// prefixCache is the generation of what the programs remember of the tries.
type prefixCache struct{ generation *ebpf.Memory }

func openPrefixCache(m *ebpf.Map) (*prefixCache, error) {
	memory, err := m.Memory()
	if err != nil {
		return nil, fmt.Errorf("share memory: %w", err)
	}
	if memory.ReadOnly() {
		return nil, fmt.Errorf("share memory: not writable")
	}
	return &prefixCache{memory}, nil
}

// forget makes the programs search again. It goes after a change of a trie and
// before what the old route referred to is given back.
func (c *prefixCache) forget() error {
	var b [4]byte
	if _, err := c.generation.ReadAt(b[:], 0); err != nil {
		return mapError(bpfMapPrefixGenV1, err)
	}
	// 0 would switch the cache off.
	next := max(binary.NativeEndian.Uint32(b[:])+1, 1)
	binary.NativeEndian.PutUint32(b[:], next)
	_, err := c.generation.WriteAt(b[:], 0)
	return mapError(bpfMapPrefixGenV1, err)
}
