package steering

import (
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// rows are what the maps have: each source without its answer, and the answer.
type rows map[taps.Source]intent.MAC

// bare is a source without what Put changes in place.
func bare(s taps.Source) taps.Source { s.Answer = intent.MAC{}; return s }

func (r rows) has(s taps.Source) bool {
	answer, there := r[bare(s)]
	return there && answer == s.Answer
}

// index finds rows while some are taken away.
type index struct {
	rows     rows
	byNumber map[identity.Number][]taps.Source
	byDevice map[uint32][]taps.Source
	// owners are the ports that have the numbers.
	owners map[identity.Number]string
}

func (d *Driver) index() *index {
	x := &index{d.rows, map[identity.Number][]taps.Source{}, map[uint32][]taps.Source{}, d.owners()}
	for s := range d.rows {
		n := identity.Number(s.Number)
		x.byNumber[n] = append(x.byNumber[n], s)
		x.byDevice[s.IfIndex] = append(x.byDevice[s.IfIndex], s)
	}
	return x
}

// of are the rows with a number that are still there.
func (x *index) of(n identity.Number) []taps.Source { return x.left(x.byNumber[n]) }

// on are the rows of a device that are still there.
func (x *index) on(ifindex uint32) []taps.Source { return x.left(x.byDevice[ifindex]) }

func (x *index) left(all []taps.Source) (out []taps.Source) {
	for _, s := range all {
		if _, there := x.rows[s]; there {
			out = append(out, s)
		}
	}
	return out
}

// owner is the port with the source's number.
func (x *index) owner(s taps.Source) (port string, owned bool) {
	port, owned = x.owners[identity.Number(s.Number)]
	return port, owned
}

// place is the key of the row that leads to a source.
func place(s taps.Source) taps.Source {
	s.Number, s.Answer = 0, intent.MAC{}
	if s.Addr.IsValid() {
		s.MAC = intent.MAC{}
	}
	return s
}

func (d *Driver) remove(s taps.Source) error {
	if err := d.config.Maps.Remove(s); err != nil {
		return err
	}
	delete(d.rows, bare(s))
	return nil
}

func (d *Driver) put(s taps.Source) error {
	if d.rows.has(s) {
		return nil
	}
	// Of one that fails some part may be there.
	d.rows[bare(s)] = intent.MAC{}
	if err := d.config.Maps.Put(s); err != nil {
		return err
	}
	d.rows[bare(s)] = s.Answer
	return nil
}
