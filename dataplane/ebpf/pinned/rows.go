package pinned

import (
	"errors"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// Walk reads all rows of a hash or trie in batches; a map that is not there has none.
func Walk[K, V any](m *ebpf.Map, each func(K, V)) (n int, err error) {
	if m == nil {
		return 0, nil
	}
	const batch = 4096
	keys, values := make([]K, batch), make([]V, batch)
	var at ebpf.MapBatchCursor
	for {
		c, err := m.BatchLookup(&at, keys, values, nil)
		for i := range c {
			each(keys[i], values[i])
		}
		n += c
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// DeleteSame removes the rows that are the same as they were when they were read: a program may
// have given a key to something else since. It counts those that are not there any more.
func DeleteSame[K comparable, V any](m *ebpf.Map, rows map[K]V, same func(is, was V) bool) (gone int, err error) {
	for k, v := range rows {
		var is V
		if failed := m.Lookup(k, &is); failed != nil || !same(is, v) {
			continue
		}
		if failed := m.Delete(k); failed == nil || errors.Is(failed, ebpf.ErrKeyNotExist) {
			gone++
		} else {
			err = errors.Join(err, failed)
		}
	}
	return gone, err
}

// settleTime is far more than a run of a program takes.
const settleTime = 50 * time.Millisecond

// Settle returns when all runs of programs have ended that had begun: what they have read of a map
// they may act on until then. A run of a TC program is in one critical section of RCU, and
// MEMBARRIER_CMD_GLOBAL waits for all of these (membarrier(2)); a kernel with nohz_full refuses it.
func Settle() {
	const global = 1
	if _, _, failed := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0); failed == 0 {
		return
	}
	if waitForRuns() != nil {
		time.Sleep(settleTime)
	}
}
