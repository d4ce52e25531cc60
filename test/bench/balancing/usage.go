package balancing

import (
	"fmt"
	"runtime"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/lab"
)

// usage is processor time, of some rounds or since something began. What the kernel does for
// packets counts as that of whom it interrupts.
type usage struct {
	wall, idle                   time.Duration // of all processors
	switches, servers, generator time.Duration
}

// usage is that of now; the generator tells its own.
func (b *bench) usage() (u usage, err error) {
	u.wall = time.Since(b.begun) * time.Duration(runtime.NumCPU())
	if u.idle, err = daemons.Idle(); err != nil {
		return u, err
	}
	all, err := b.lab.Processes()
	if err != nil {
		return u, err
	}
	by := map[string][]*lab.Process{}
	for _, p := range all {
		by[p.Name] = append(by[p.Name], p)
	}
	if u.switches, err = daemons.Processor(by["vswitchd"]); err != nil {
		return u, err
	}
	u.servers, err = daemons.Processor(by["backend"])
	return u, err
}

func (u usage) minus(o usage) usage {
	return usage{u.wall - o.wall, u.idle - o.idle, u.switches - o.switches, u.servers - o.servers, u.generator - o.generator}
}

func (u *usage) add(o usage) {
	*u = u.minus(usage{-o.wall, -o.idle, -o.switches, -o.servers, -o.generator})
}

// lab is what the lab has used. A busy machine makes a connection take longer, and hardly makes
// it more work.
func (u usage) lab() time.Duration { return u.switches + u.servers + u.generator }

// String says who had the processors. The rest is the kernel's threads, and all that has
// nothing to do with it.
func (u usage) String() string {
	if u.wall <= 0 {
		return "nothing is known of processors"
	}
	share := func(d time.Duration) float64 { return 100 * float64(d) / float64(u.wall) }
	return fmt.Sprintf("processors: Open vSwitch %.0f %%, servers %.0f %%, generator %.0f %%, idle %.0f %%, the rest %.0f %%",
		share(u.switches), share(u.servers), share(u.generator), share(u.idle), share(u.wall-u.idle-u.lab()))
}
