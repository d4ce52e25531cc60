package loadbalancer

import (
	"maps"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// Book keeps what rows of Load_Balancer say, once for all who read them: probes change, and
// nothing else, most of the time. It is used by one goroutine at a time. The zero value is empty.
type Book struct {
	rows     *ovn.Rows
	readings map[ovn.UUID]reading
}

// reading is what a row says, and of what.
type reading struct {
	Reading
	revision uint64 // of the row
	size     int
	held     string
}

// Follow makes the book read these rows from now on, and forgets what those said that are gone.
func (b *Book) Follow(rows *ovn.Rows) {
	switch {
	case b.rows != rows:
		b.rows, b.readings = rows, map[ovn.UUID]reading{}
	case len(b.readings) > rows.CountBalancers():
		maps.DeleteFunc(b.readings, func(id ovn.UUID, _ reading) bool { _, there := rows.Balancer(id); return !there })
	}
}

// VIPs reads a load balancer, as this chassis has it, with what is known of its backends'
// health. size is that of tables in NB_Global, or 0. wrong is told what is wrong with the row,
// or with one of its VIPs.
func (b *Book) VIPs(row ovn.LoadBalancer, size int, wrong func(error)) []VIP {
	held := b.rows.Held(row)
	read, done := b.readings[row.UUID]
	if !done || read.revision != row.Revision || read.size != size || read.held != held {
		text := Row{Protocol: row.Protocol, VIPs: row.VIPs, Options: row.Options, Held: held}
		read = reading{Read(text, b.rows.TemplateVariables(), size), row.Revision, size, held}
		// What a variable has may change, and the row stays.
		if !row.Templated() {
			b.readings[row.UUID] = read
		}
	}
	for _, err := range read.Wrong {
		wrong(err)
	}
	return read.Probed(func(v VIP, backend netip.AddrPort) string {
		return b.rows.Health(row, v.Key, v.Protocol.String(), backend)
	})
}
