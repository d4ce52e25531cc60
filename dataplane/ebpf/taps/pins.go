package taps

import "fmt"

// KeepPins is that of package ebpf's Dataplane.
func (t *Taps) KeepPins() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	made, err := t.held.Settle()
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	if made > 0 {
		t.log.Warn("another file system was mounted over the pins, or theirs was unmounted; they were made again", "path", t.dir, "pins", made)
	}
	return nil
}

// pins is where the pins are to be found and made. t.mu is held.
func (t *Taps) pins() string { return t.held.Dir() }
