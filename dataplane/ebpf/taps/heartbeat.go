package taps

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/cilium/ebpf"
)

// ErrNotLoaded is wrapped when a directory holds no metadata programs.
var ErrNotLoaded = errors.New("no pinned metadata programs")

// Heartbeat is the proxy's sign of life: see Config.StaleAfter. It needs nothing else of
// this package, and belongs to the proxy's process.
type Heartbeat struct{ r *Reader }

// OpenHeartbeat opens the pinned map of a directory that Load has filled. The process that
// did need not run. After Remove, and after a build with another layout of this map has
// taken over, it has to be opened again: what is written to the one before nobody reads.
func OpenHeartbeat(dir string) (*Heartbeat, error) {
	m, err := ebpf.LoadPinnedMap(filepath.Join(dir, bpfMapHeartbeatV1), nil)
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrNotLoaded
	}
	if err != nil {
		return nil, fmt.Errorf("heartbeat in %s: %w", dir, err)
	}
	return &Heartbeat{&Reader{dir: dir, maps: map[string]*ebpf.Map{bpfMapHeartbeatV1: m}}}, nil
}

// Beat says that the proxy answers requests now.
func (h *Heartbeat) Beat() error {
	now, err := monotonic()
	if err != nil {
		return err
	}
	return h.write(now)
}

// Stop says that it does so no longer: requests go on to Open vSwitch from here on.
func (h *Heartbeat) Stop() error { return h.write(0) }

func (h *Heartbeat) write(at uint64) error {
	if err := h.r.maps[bpfMapHeartbeatV1].Put(uint32(0), at); err != nil {
		return fmt.Errorf("map %s: %w", bpfMapHeartbeatV1, err)
	}
	return nil
}

// Age is how long ago the last beat was; not ok: there was none, or it was stopped.
func (h *Heartbeat) Age() (age time.Duration, ok bool, err error) { return h.r.HeartbeatAge() }

// Close lets go of the map. The last beat stays.
func (h *Heartbeat) Close() error { return h.r.Close() }
