package metadata

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

const (
	// publishedLook is between two looks while a network is to enter or to leave the key.
	publishedLook = 100 * time.Millisecond
	// leavePatience is how long what serves a network waits for the network to leave the key.
	leavePatience = 5 * time.Second
	// settlePatience is how long looks come that soon after what is wanted has changed.
	settlePatience = 10 * time.Second
)

// settling is since when the key is to become what is wanted; zero: it is.
type settling struct {
	since  time.Time
	wanted []string
}

func (s *settling) see(settled bool, wanted []string, now time.Time) {
	switch {
	case settled:
		s.since = time.Time{}
	case s.since.IsZero() || !slices.Equal(s.wanted, wanted):
		s.since = now
	}
	s.wanted = slices.Clone(wanted)
}

// soon tells whether the next look comes after publishedLook.
func (s *settling) soon(now time.Time) bool {
	return !s.since.IsZero() && now.Sub(s.since) < settlePatience
}

// publishedNetworks is the order of metadata.publishNetworks: a network enters the key when a
// request of it is answered, and leaves it before what serves it goes.
type publishedNetworks struct {
	mu sync.Mutex
	// leaving are the networks that are in the key and are not to be, and since when: the zero
	// value for one that is waited for no longer.
	leaving map[string]time.Time
	// open are those in whose namespaces somebody listens; changes counts those that were
	// taken out.
	open    map[string]bool
	changes int
}

// inKey tells whether what serves a network has to wait for the key. It is asked with the
// pipeline's lock held.
func (p *publishedNetworks) inKey(network string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.leaving[network].IsZero()
}

// leave takes note of what the key has and should not have, and tells whether what serves a
// network need not wait any more.
func (p *publishedNetworks) leave(key, wanted []string) (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, since := range p.leaving {
		switch {
		case !slices.Contains(key, n) || slices.Contains(wanted, n):
			delete(p.leaving, n)
			left = true
		case !since.IsZero() && time.Since(since) >= leavePatience:
			p.leaving[n] = time.Time{} // the database does not take it; that is told elsewhere
			left = true
		}
	}
	for _, n := range key {
		if _, leaves := p.leaving[n]; !leaves && !slices.Contains(wanted, n) {
			p.leaving[n] = time.Now()
		}
	}
	return left
}

// look finds the networks in whose namespaces somebody listens. A namespace that cannot be
// looked at has gone, or is still to come.
func (p *publishedNetworks) look(programmed map[string]intent.MetadataNetwork) {
	p.mu.Lock()
	changes := p.changes
	p.mu.Unlock()
	open := map[string]bool{}
	for name, n := range programmed {
		listens, err := namespace.Names{}.Listening(name, n.IPv6)
		open[name] = err == nil && listens
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changes == changes { // else it may have seen a namespace that has gone since
		p.open = open
	}
}

// keep forgets the networks whose namespaces are not there, or not as they should be.
func (p *publishedNetworks) keep(programmed map[string]intent.MetadataNetwork) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.open {
		if _, there := programmed[n]; !there {
			delete(p.open, n)
			p.changes++
		}
	}
}

func (p *publishedNetworks) listens(network string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[network]
}

// programmed are the rows of a table that are wanted, and in place.
func programmed[V comparable](t *reconcile.Table[string, V]) map[string]V {
	wanted, actual := t.Rows()
	maps.DeleteFunc(wanted, func(k string, v V) bool { now, there := actual[k]; return !there || now != v })
	return wanted
}

// networks are those of wanted that are to be in the key: with a port that is served from its
// tap, or by a namespace where the proxy listens, while the proxy lives. Until all that can be
// known, what the key has stays. m.mu is held.
func (m *Metadata) networks(wanted []string) []string {
	key := m.follower.MetadataNetworks()
	var out []string
	switch {
	case !m.looked || m.running == nil || !tables.Of(m.running.Tables, intent.MetadataPorts).Known():
		out = slices.DeleteFunc(slices.Clone(wanted), func(n string) bool { return !slices.Contains(key, n) })
	case m.alive:
		m.published.keep(programmed(tables.Of(m.running.Tables, intent.MetadataNetworks)))
		served := map[string]bool{}
		for _, p := range programmed(tables.Of(m.running.Tables, intent.MetadataPorts)) {
			served[p.Network] = served[p.Network] || p.Tap.IfIndex != 0 || m.published.listens(p.Network)
		}
		out = slices.DeleteFunc(slices.Clone(wanted), func(n string) bool { return !served[n] })
	}
	// What is wanted and not served at the moment is in nobody's way.
	if m.published.leave(key, wanted) && m.running != nil {
		m.running.Tables.Pipeline.Kick()
	}
	m.settling.see(len(out) == len(wanted) && len(key) == len(out), wanted, time.Now())
	return out
}
