package ovn

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// optionTemplate is the key of Load_Balancer.options that says that the row has variables.
const optionTemplate = "template"

// optionHashFields is what ovn-northd makes of NB Load_Balancer.selection_fields in SB
// Load_Balancer.options.
const optionHashFields = "hash_fields"

// optionTableSize is the key of NB_Global.options that load balancers have in their own, too.
const optionTableSize = "sluice-m"

// LoadBalancer is a row of NB Load_Balancer, with Needs.LoadBalancing or Needs.Clients; or,
// with BalanceBySouthbound, one of SB Load_Balancer.
type LoadBalancer struct {
	UUID UUID
	// Revision is another number each time that the store takes the row, whatever it says then.
	Revision uint64 `json:"-"`
	// Northbound is the _uuid of the Northbound row that a row of Southbound is made of.
	Northbound UUID
	Name       string
	// Protocol is empty, which means tcp, or tcp, udp or sctp.
	Protocol string
	VIPs     map[string]string
	// Options has hash_fields, too, as SB Load_Balancer has it; HashFields is what the column
	// itself has of it.
	Options    map[string]string
	HashFields string
	// Ports are the logical ports of backends by their address (ip_port_mappings), as far
	// as backends are probed.
	Ports map[netip.Addr]string
	// HealthChecks are rows of Load_Balancer_Health_Check.
	HealthChecks []UUID
	// At are the Datapath_Bindings and Logical_DP_Groups of the switches that a row of
	// Southbound is for, and Probed the addresses of its backends.
	At     []UUID
	Probed []netip.Addr
}

// TemplateVar is a row of SB Chassis_Template_Var.
type TemplateVar struct {
	UUID UUID
	// Chassis is the name of one.
	Chassis   string
	Variables map[string]string
}

// LoadBalancerGroup is a row of NB Load_Balancer_Group.
type LoadBalancerGroup struct {
	UUID          UUID
	LoadBalancers []UUID
}

// Key is the row's _uuid.
func (b LoadBalancer) Key() UUID { return b.UUID }

// Key is the row's _uuid.
func (g LoadBalancerGroup) Key() UUID { return g.UUID }

// Key is the row's _uuid.
func (v TemplateVar) Key() UUID { return v.UUID }

func (LoadBalancer) table() Table      { return TableLoadBalancer }
func (LoadBalancerGroup) table() Table { return TableLoadBalancerGroup }
func (TemplateVar) table() Table       { return TableTemplateVar }

// lbRows are the rows of this file, and the indices of them.
type lbRows struct {
	balancers  map[UUID]LoadBalancer
	lbGroups   map[UUID]LoadBalancerGroup
	lbGroupsOf index[UUID] // Load_Balancer → Load_Balancer_Groups
	checks     map[UUID]HealthCheck
	lbOfCheck  index[UUID] // Load_Balancer_Health_Check → Load_Balancers
	monitors   map[UUID]ServiceMonitor
	monitorOf  index[probed]
	monitorAt  index[probed]     // the same without the logical port
	probesOf   index[string]     // logical port → Service_Monitors, with BalanceBySouthbound
	lbOfPort   index[string]     // logical port of a backend → Load_Balancers
	lbWith     index[netip.Addr] // backend → rows of SB Load_Balancer
	templated  map[UUID]struct{} // the Load_Balancers that read templates
	templates  map[UUID]TemplateVar
	south      southLB
	// lists are those of routers and switches, by their datapaths, as long as they are known:
	// probes change, and nothing else, most of the time.
	lists map[UUID]balancerList
	// revisions counts those of Load_Balancers.
	revisions uint64
}

func newLBRows() lbRows {
	return lbRows{balancers: map[UUID]LoadBalancer{}, lbGroups: map[UUID]LoadBalancerGroup{}, lbGroupsOf: index[UUID]{},
		checks: map[UUID]HealthCheck{}, lbOfCheck: index[UUID]{}, monitors: map[UUID]ServiceMonitor{}, monitorOf: index[probed]{}, monitorAt: index[probed]{}, lbOfPort: index[string]{},
		probesOf: index[string]{}, lbWith: index[netip.Addr]{}, templated: map[UUID]struct{}{},
		templates: map[UUID]TemplateVar{}, south: newSouthLB(), lists: map[UUID]balancerList{}}
}

func convertLoadBalancers(row ovsdb.Row) Row {
	switch r := row.(type) {
	case *nb.LoadBalancer:
		b := LoadBalancer{UUID: UUID(r.UUID), Name: r.Name, Protocol: value(r.Protocol), VIPs: r.Vips, Options: r.Options,
			HealthChecks: uuids(r.HealthCheck), Ports: backendPorts(r.IPPortMappings)}
		b.HashFields = r.Options[optionHashFields]
		if len(r.SelectionFields) > 0 {
			b.Options = maps.Clone(b.Options)
			if b.Options == nil {
				b.Options = map[string]string{}
			}
			b.Options[optionHashFields] = strings.Join(slices.Sorted(slices.Values(r.SelectionFields)), ",")
		}
		return b
	case *nb.LoadBalancerGroup:
		return LoadBalancerGroup{UUID: UUID(r.UUID), LoadBalancers: uuids(r.LoadBalancer)}
	case *nb.LoadBalancerHealthCheck:
		return HealthCheck{UUID: UUID(r.UUID), VIP: r.Vip}
	case *sb.ChassisTemplateVar:
		return TemplateVar{UUID: UUID(r.UUID), Chassis: r.Chassis, Variables: r.Variables}
	case *sb.ServiceMonitor:
		return ServiceMonitor{UUID: UUID(r.UUID), LogicalPort: r.LogicalPort, IP: r.IP, Protocol: value(r.Protocol), Port: uint16(r.Port), Status: value(r.Status)}
	}
	return convertSouthLB(row)
}

// backendPorts reads ip_port_mappings: ADDRESS=PORT:SOURCE, IPv6 addresses in brackets. A
// port's name may have colons, its source in brackets too; the address ends at the last
// colon outside of them.
func backendPorts(mappings map[string]string) map[netip.Addr]string {
	if len(mappings) == 0 {
		return nil
	}
	out := make(map[netip.Addr]string, len(mappings))
	for addr, text := range mappings {
		a, err := netip.ParseAddr(strings.Trim(addr, "[]"))
		if err != nil {
			continue // ovn-northd makes no probe of it either
		}
		port := text
		if i := strings.LastIndex(text, ":["); i >= 0 && strings.HasSuffix(text, "]") {
			port = text[:i]
		} else if i := strings.LastIndexByte(text, ':'); i >= 0 {
			port = text[:i]
		}
		out[a] = port
	}
	return out
}

func (l *lbRows) put(c Change) {
	switch c.Table {
	case TableLoadBalancer:
		l.putBalancer(c)
		return
	case TableHealthCheck:
		store(l.checks, c)
		return
	case TableTemplateVar:
		store(l.templates, c)
		return
	case TableServiceMonitor:
		if old := store(l.monitors, c); old.UUID != "" {
			l.monitorOf.Delete(old.probed(), c.UUID)
			l.monitorAt.Delete(old.probed().anywhere(), c.UUID)
			l.probesOf.Delete(old.LogicalPort, c.UUID)
		}
		if m, ok := l.monitors[c.UUID]; ok {
			l.monitorOf.Add(m.probed(), c.UUID)
			l.monitorAt.Add(m.probed().anywhere(), c.UUID)
			if l.south.follows {
				l.probesOf.Add(m.LogicalPort, c.UUID)
			}
		}
		return
	case TableDatapathGroup:
		l.south.putGroup(c)
		return
	case TableSBGlobal:
		store(l.south.globals, c)
		return
	}
	old := store(l.lbGroups, c)
	for _, id := range old.LoadBalancers {
		l.lbGroupsOf.Delete(id, c.UUID)
	}
	for _, id := range l.lbGroups[c.UUID].LoadBalancers {
		l.lbGroupsOf.Add(id, c.UUID)
	}
}

func (l *lbRows) putBalancer(c Change) {
	delete(l.templated, c.UUID)
	old := store(l.balancers, c)
	l.indexBalancer(old, index[UUID].Delete, index[string].Delete)
	for _, a := range old.Probed {
		l.lbWith.Delete(a, c.UUID)
	}
	b, there := l.balancers[c.UUID]
	if !there {
		return
	}
	l.revisions++
	b.Revision = l.revisions
	l.balancers[c.UUID] = b
	l.indexBalancer(b, index[UUID].Add, index[string].Add)
	for _, a := range b.Probed {
		l.lbWith.Add(a, c.UUID)
	}
	if b.Templated() {
		l.templated[c.UUID] = struct{}{}
	}
}

// Templated tells whether the row is another one on each chassis.
func (b LoadBalancer) Templated() bool { return ovsdb.Bool(b.Options, optionTemplate) }

func (l *lbRows) indexBalancer(b LoadBalancer, check func(index[UUID], UUID, UUID), port func(index[string], string, UUID)) {
	for _, id := range b.HealthChecks {
		check(l.lbOfCheck, id, b.UUID)
	}
	for _, name := range b.Ports {
		port(l.lbOfPort, name, b.UUID)
	}
	for _, id := range b.At {
		check(l.south.lbAt, id, b.UUID)
	}
}

func (l *lbRows) allNB() [][]Row {
	if l.south.follows {
		return nil
	}
	return [][]Row{values(l.balancers), values(l.lbGroups), values(l.checks)}
}

// relates tells, before the change is applied, whether other rows may be needed after it.
func (l *lbRows) relates(c Change) bool {
	switch c.Table {
	case TableLoadBalancer:
		old, next := l.balancers[c.UUID], LoadBalancer{}
		if row, ok := c.New.(LoadBalancer); ok {
			next = row
		}
		return !slices.Equal(old.HealthChecks, next.HealthChecks) || !maps.Equal(old.Ports, next.Ports) ||
			!slices.Equal(old.At, next.At) || !slices.Equal(old.Probed, next.Probed)
	case TableServiceMonitor:
		next, _ := c.New.(ServiceMonitor)
		return l.south.follows && l.monitors[c.UUID].LogicalPort != next.LogicalPort
	case TableDatapathGroup:
		return l.south.relates(c)
	case TableLoadBalancerGroup:
		old, had := l.lbGroups[c.UUID]
		next, has := c.New.(LoadBalancerGroup)
		return had != has || !slices.Equal(old.LoadBalancers, next.LoadBalancers)
	}
	return false
}

// wanted asks for the load balancers of a router or switch, and of its groups.
func (l *lbRows) wanted(balancers, groups []UUID, byUUID func(string, []UUID)) {
	byUUID("Load_Balancer", balancers)
	byUUID("Load_Balancer_Group", groups)
	ids := slices.Clone(balancers)
	for _, id := range groups {
		byUUID("Load_Balancer", l.lbGroups[id].LoadBalancers)
		ids = append(ids, l.lbGroups[id].LoadBalancers...)
	}
	for _, id := range ids {
		byUUID("Load_Balancer_Health_Check", l.balancers[id].HealthChecks)
	}
}

// touchedByBalancer adds the routers that have a load balancer, by themselves or in a group.
func (r *Rows) touchedByBalancer(id UUID, into map[UUID]struct{}) {
	for lr := range r.childOf.All(id) {
		r.addNBRouter(lr, into)
	}
	for group := range r.lbGroupsOf.All(id) {
		for lr := range r.childOf.All(group) {
			r.addNBRouter(lr, into)
		}
	}
}

// touchedByAll adds the routers with load balancers.
func (r *Rows) touchedByAll(into map[UUID]struct{}) {
	for id := range r.balancers {
		r.touchedByBalancer(id, into)
	}
}

// TemplateVariables are those of this chassis.
func (r *Rows) TemplateVariables() map[string]string {
	for _, v := range r.templates {
		if v.Chassis == r.SystemID() {
			return v.Variables
		}
	}
	return nil
}

// TableSize is NB_Global.options:sluice-m, or what Southbound has of it, or empty.
func (r *Rows) TableSize() string {
	for _, g := range r.globals {
		return g.TableSize
	}
	for _, g := range r.south.globals {
		return g.TableSize
	}
	return ""
}
