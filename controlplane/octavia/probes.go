package octavia

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"strings"
	"sync"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// Statuses of a Service_Monitor row. It has none before the first probe.
const (
	probeOnline  = "online"
	probeOffline = "offline"
	probeError   = "error"
)

// probed is what a Service_Monitor row is about.
type probed struct {
	port, protocol string
	at             netip.AddrPort
}

// probes are statuses of Service_Monitor rows. They do not change.
type probes map[probed]string

// Probes follows what ovn-controller finds out about members: Service_Monitor, in the Southbound
// database.
type Probes struct {
	session *ovsdb.Session

	mu sync.Mutex
	// rows are what the database has; known is nil while it is not followed.
	rows  map[string]*sb.ServiceMonitor
	known probes
	// waiting is closed at the next change of known.
	waiting chan struct{}
}

// NewProbes checks the endpoints, as in ovsdb.Config. It does no I/O.
func NewProbes(endpoints string, tls ovsdb.TLSFiles, log *slog.Logger) (*Probes, error) {
	p := &Probes{rows: map[string]*sb.ServiceMonitor{}, waiting: make(chan struct{})}
	var err error
	p.session, err = ovsdb.NewSession(ovsdb.Config{
		Database: sb.Database(), Endpoints: endpoints, TLS: tls, Logger: log, Handler: p.take,
		Tables:     ovsdb.Tables{sb.ServiceMonitorTable: {"ip", "logical_port", "port", "protocol", "status"}},
		Conditions: ovsdb.Conditions{sb.ServiceMonitorTable: {ovsdb.All()}},
	})
	return p, err
}

// Run follows the database until ctx ends.
func (p *Probes) Run(ctx context.Context) error { return p.session.Run(ctx) }

// Status is the session's.
func (p *Probes) Status() ovsdb.Status { return p.session.Status() }

// take is the session's handler.
func (p *Probes) take(b ovsdb.Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range b.Changes {
		if row, is := c.New.(*sb.ServiceMonitor); is {
			p.rows[c.UUID] = row
		} else {
			delete(p.rows, c.UUID)
		}
	}
	var next probes
	if b.InSync {
		next = probes{}
		for _, row := range p.rows {
			if of, ok := probedBy(row); ok && row.Status != nil {
				next[of] = *row.Status
			}
		}
	}
	if (next == nil) != (p.known == nil) || !maps.Equal(next, p.known) {
		p.known = next
		close(p.waiting)
		p.waiting = make(chan struct{})
	}
}

func probedBy(row *sb.ServiceMonitor) (of probed, ok bool) {
	a, err := netip.ParseAddr(strings.Trim(row.IP, "[]"))
	if err != nil || row.Port < 0 || row.Port > 65535 {
		return of, false
	}
	of = probed{port: row.LogicalPort, protocol: "tcp", at: netip.AddrPortFrom(a, uint16(row.Port))}
	if row.Protocol != nil {
		of.protocol = *row.Protocol
	}
	return of, true
}

// now are the statuses, nil while they are not known, and what is closed when they change. Of a nil
// Probes nothing is ever known.
func (p *Probes) now() (probes, <-chan struct{}) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known, p.waiting
}

// changedSince are the addresses of which a probe has another status than before.
func (p probes) changedSince(before probes) map[string]bool {
	out := map[string]bool{}
	for of, status := range p {
		if before[of] != status {
			out[of.at.Addr().String()] = true
		}
	}
	for of := range before {
		if _, has := p[of]; !has {
			out[of.at.Addr().String()] = true
		}
	}
	return out
}

// watches tells whether a row has members at one of the addresses that are probed.
func watches(row *nb.LoadBalancer, addresses map[string]bool) bool {
	if len(row.HealthCheck) == 0 {
		return false
	}
	for address := range row.IPPortMappings {
		if addresses[strings.Trim(address, "[]")] {
			return true
		}
	}
	return false
}

// states are the states that members of a row have by what is known of them: of those in
// ip_port_mappings that have not been disabled. A member whose port is gone is not probed any more:
// it is as one that does not answer. One that has not been probed yet keeps its state.
func (p probes) states(from northbound.Reader, r *rowform.Row) map[string]string {
	out := map[string]string{}
	if p == nil || len(r.Checks) == 0 {
		return out
	}
	for _, pool := range r.Pools {
		for _, m := range pool.Members {
			port := probedPort(r.Mappings, m.Addr.Addr())
			if port == "" || r.Status.Get(m.ID) == rowform.StatusOffline {
				continue
			}
			switch p[probed{port, r.Protocol, m.Addr}] {
			case probeOnline:
				out[m.ID] = rowform.StatusOnline
			case probeOffline, probeError:
				out[m.ID] = rowform.StatusError
			default:
				if r.Status.Get(m.ID) == rowform.StatusOnline && len(northbound.Find(from, northbound.SwitchPortByName, port)) == 0 {
					out[m.ID] = rowform.StatusError
				}
			}
		}
	}
	return out
}

// probedPort is the logical port of a member in ip_port_mappings: <address>=<port>:<source>, with
// IPv6 addresses in brackets. It is empty for none.
func probedPort(mappings map[string]string, a netip.Addr) string {
	key, separator := a.String(), ":"
	if a.Is6() {
		key, separator = "["+key+"]", ":["
	}
	text := mappings[key]
	if i := strings.LastIndex(text, separator); i >= 0 {
		return text[:i]
	}
	return text
}

// agrees tells whether members have the states that probes say.
func (b *Balancer) agrees(p probes) bool {
	for _, r := range b.Rows {
		for id, state := range p.states(b.from, r) {
			if r.Status.Get(id) != state {
				return false
			}
		}
	}
	return true
}

// take has members in the states that probes say.
func (b *Balancer) take(p probes) {
	for _, r := range b.Rows {
		for id, state := range p.states(b.from, r) {
			r.Status.Set(id, state)
		}
	}
}
