package taps

// KeepPins is that of package ebpf's Dataplane.
func (t *Taps) KeepPins() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	objects := map[string]int{}
	for name, m := range t.maps {
		objects[name] = m.FD()
	}
	for name, p := range t.programs {
		p.Objects(name, objects)
	}
	return t.held.Keep(objects, t.log)
}

// pins is where the pins are to be found and made. t.mu is held.
func (t *Taps) pins() string { return t.held.Dir() }
