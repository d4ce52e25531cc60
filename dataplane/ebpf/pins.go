package ebpf

import "fmt"

// KeepPins makes the pins again where the directory's path leads now, if another file system is
// mounted there than when they were made. What is attached goes on. Until it succeeds the pins
// are there for this process alone, and end with it.
func (d *Dataplane) KeepPins() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	made, err := d.held.Settle()
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	if made > 0 {
		d.log.Warn("another file system was mounted over the pins, or theirs was unmounted; they were made again", "path", d.dir, "pins", made)
	}
	return nil
}

// pins is where the pins are to be found and made.
func (d *Dataplane) pins() string { return d.held.Dir() }
