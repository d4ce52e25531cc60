package ebpf

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
)

// prefixCache is the generation of what the programs remember of the tries.
type prefixCache struct{ generation *sharedWords }

func openPrefixCache(m *ebpf.Map) (*prefixCache, error) {
	generation, err := shareWords(m)
	return &prefixCache{generation}, err
}

// forget makes the programs search again. It goes after a change of a trie and
// before what the old route referred to is given back; the store is atomic so that
// on arm64, too, it is seen after what was written before it.
func (c *prefixCache) forget() {
	defer runtime.KeepAlive(c.generation)
	now := (*uint32)(unsafe.Pointer(&c.generation.words[0]))
	// 0 would switch the cache off.
	atomic.StoreUint32(now, max(atomic.LoadUint32(now)+1, 1))
}
