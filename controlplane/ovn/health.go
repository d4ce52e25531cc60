package ovn

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/multimap"
)

// HealthCheck is a row of NB Load_Balancer_Health_Check.
type HealthCheck struct {
	UUID UUID
	// VIP is the key of Load_Balancer.vips whose backends are probed.
	VIP string
}

// ServiceMonitor is a row of SB Service_Monitor: what ovn-controller found out about a
// backend.
type ServiceMonitor struct {
	UUID UUID
	// IP has no brackets. Protocol is tcp or udp.
	LogicalPort, IP, Protocol string
	Port                      uint16
	// Status is online, offline, error, or empty: not known yet.
	Status string
}

// Key is the row's _uuid.
func (h HealthCheck) Key() UUID { return h.UUID }

// Key is the row's _uuid.
func (m ServiceMonitor) Key() UUID { return m.UUID }

func (HealthCheck) table() Table    { return TableHealthCheck }
func (ServiceMonitor) table() Table { return TableServiceMonitor }

// probed is what a Service_Monitor row is about.
type probed struct {
	port, protocol string
	at             netip.AddrPort
}

func (m ServiceMonitor) probed() probed {
	a, _ := netip.ParseAddr(strings.Trim(m.IP, "[]"))
	return probed{m.LogicalPort, m.Protocol, netip.AddrPortFrom(a, m.Port)}
}

// anywhere is the same of any logical port.
func (p probed) anywhere() probed {
	p.port = ""
	return p
}

// monitored are the logical ports of which the health is needed: those of load balancers
// that are followed, and that probe.
func (l *lbRows) monitored() []string {
	set := map[string]struct{}{}
	for _, b := range l.balancers {
		if len(b.HealthChecks) > 0 {
			for _, port := range b.Ports {
				set[port] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// touchedByHealth adds the routers whose backends a row of health is about.
func (r *Rows) touchedByHealth(c Change, into map[UUID]struct{}) {
	if c.Table == TableHealthCheck {
		for id := range r.lbOfCheck.All(c.UUID) {
			r.touchedByBalancer(id, into)
		}
		return
	}
	if m, ok := r.monitors[c.UUID]; ok {
		for id := range r.lbOfPort.All(m.LogicalPort) {
			r.touchedByBalancer(id, into)
		}
	}
}

// Health tells what is known of a backend of one of the load balancer's VIPs: online,
// offline, error, or empty where it is not probed or nothing is known yet. vip is the key
// of vips, protocol tcp or udp.
func (r *Rows) Health(b LoadBalancer, vip, protocol string, backend netip.AddrPort) string {
	if r.south.follows {
		return r.southHealth(b, protocol, backend)
	}
	if !slices.ContainsFunc(b.HealthChecks, func(id UUID) bool { return r.checks[id].VIP == vip }) {
		return ""
	}
	id, ok := multimap.First(r.monitorOf, probed{b.Ports[backend.Addr()], protocol, backend})
	if !ok {
		return ""
	}
	return r.monitors[id].Status
}
