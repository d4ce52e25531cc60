package rowform

import (
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// Columns are those that NBRow fills.
func Columns() []string {
	return []string{"name", "protocol", "external_ids", "options", "vips", "selection_fields", "health_check", "ip_port_mappings"}
}

// NBRow writes the row.
func (r Row) NBRow() *nb.LoadBalancer {
	out := &nb.LoadBalancer{
		UUID: r.UUID, Name: r.Balancer, ExternalIDs: r.externalIDs(), Vips: r.vips(), SelectionFields: selectionFields(),
		HealthCheck: r.Checks, IPPortMappings: r.Mappings, Options: maps.Clone(r.OtherOptions),
	}
	if r.Protocol != "" {
		out.Protocol = &r.Protocol
	}
	if r.Affinity != "" {
		keep(&out.Options, optionAffinity, r.Affinity)
	}
	return out
}

func (r Row) externalIDs() map[string]string {
	ids := maps.Clone(r.Other)
	put := func(key, value string) {
		if value != "" {
			keep(&ids, key, value)
		}
	}
	put(keyEnabled, map[bool]string{true: "True", false: "False"}[r.Enabled])
	put(keyVIP, r.VIP.Address.String())
	put(keyVIPPort, r.VIP.Port)
	put(keyVIPFIP, floating(r.VIP))
	put(keyAdditional, join(r.Additional, func(v VIP) string { return v.Address.String() }))
	put(keyAdditionalPorts, join(r.Additional, func(v VIP) string { return v.Port }))
	if slices.ContainsFunc(r.Additional, func(v VIP) bool { return v.FloatingIP.IsValid() }) {
		put(keyAdditionalFIPs, join(r.Additional, floating))
	}
	if r.Switches != nil {
		put(keySwitches, r.Switches.String())
	}
	put(keyRouters, strings.Join(r.Routers, ","))
	if len(r.Status) > 0 {
		put(keyStatus, r.Status.String())
	}
	if len(r.Monitors) > 0 {
		put(keyMonitors, jsonList(r.Monitors))
	}
	for _, l := range r.Listeners {
		value := strconv.Itoa(l.Port) + ":"
		if l.Pool != "" {
			value += poolPrefix + l.Pool
		}
		keep(&ids, listenerPrefix+l.ID+suffix(l.Enabled), value)
	}
	for _, p := range r.Pools {
		keep(&ids, poolPrefix+p.ID+suffix(p.Enabled), join(p.Members, Member.String))
	}
	return ids
}

func suffix(enabled bool) string {
	if enabled {
		return ""
	}
	return disabledSuffix
}

func floating(v VIP) string {
	if v.FloatingIP.IsValid() {
		return v.FloatingIP.String()
	}
	return ""
}

func join[T any](list []T, text func(T) string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = text(v)
	}
	return strings.Join(out, ",")
}

// vips are what OVN balances: for each enabled listener with an enabled pool an entry of each VIP
// and floating IP, with the members of its address family that are not taken out.
func (r Row) vips() map[string]string {
	var vips map[string]string
	if !r.Enabled {
		return nil
	}
	for _, l := range r.Listeners {
		i := slices.IndexFunc(r.Pools, func(p Pool) bool { return p.ID == l.Pool && p.Enabled })
		if !l.Enabled || i < 0 {
			continue
		}
		for _, v := range slices.Concat([]VIP{r.VIP}, r.Additional) {
			backends := r.backends(r.Pools[i], v.Address.Is4())
			for _, a := range []netip.Addr{v.Address, v.FloatingIP} {
				if a.IsValid() && backends != "" {
					keep(&vips, netip.AddrPortFrom(a, uint16(l.Port)).String(), backends)
				}
			}
		}
	}
	return vips
}

func (r Row) backends(p Pool, v4 bool) string {
	var out []string
	for _, m := range p.Members {
		if m.Addr.Addr().Is4() == v4 && r.Status.Get(m.ID) != StatusOffline {
			out = append(out, m.Addr.String())
		}
	}
	return strings.Join(out, ",")
}
