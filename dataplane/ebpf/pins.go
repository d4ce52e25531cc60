package ebpf

// KeepPins makes the pins again where the directory's path leads now, if another file system is
// mounted there than when they were made, and pins of maps and programs that were removed. What
// is attached goes on. Until it succeeds the pins are there for this process alone, and end with
// it. A link whose pin is removed ends; whoever attached it attaches it again.
func (d *Dataplane) KeepPins() error {
	objects := map[string]int{}
	d.store.mu.Lock() // before d.mu, as drivers do that attach
	for _, pages := range d.store.pages() {
		pages.objects(objects)
	}
	d.store.mu.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.objects(objects)
	return d.held.Keep(objects, d.log)
}

// objects adds the descriptors of maps and programs, by the names of their pins. Until Replace,
// and Promote, these names are those of what runs, which is not held.
func (d *Dataplane) objects(to map[string]int) {
	if d.later != nil || len(d.older) > 0 {
		return
	}
	for name, m := range d.tables {
		to[name] = m.FD()
	}
	for p, program := range d.programs {
		program.Objects(p.String(), to)
	}
}

// pins is where the pins are to be found and made.
func (d *Dataplane) pins() string { return d.held.Dir() }
