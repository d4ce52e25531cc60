package rowform

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// The keys of external_ids.
const (
	keyEnabled         = "enabled"
	keyVIP             = "neutron:vip"
	keyVIPPort         = "neutron:vip_port_id"
	keyVIPFIP          = "neutron:vip_fip"
	keyAdditional      = "neutron:additional_vips"
	keyAdditionalPorts = "neutron:additional_vip_port_ids"
	keyAdditionalFIPs  = "neutron:additional_vip_fips"
	keySwitches        = "ls_refs"
	keyRouters         = "lr_ref"
	keyStatus          = "neutron:member_status"
	keyMonitors        = "octavia:healthmonitors"

	listenerPrefix = "listener_"
	poolPrefix     = "pool_"
	memberPrefix   = "member_"
	disabledSuffix = ":D"

	optionAffinity = "affinity_timeout"
	optionWeights  = "sluice-weights"
)

// States of a member, in neutron:member_status.
const (
	StatusOnline    = "ONLINE"
	StatusOffline   = "OFFLINE"
	StatusError     = "ERROR"
	StatusNoMonitor = "NO_MONITOR"
)

// Row is a Load_Balancer row: what one load balancer has of one protocol.
type Row struct {
	UUID string
	// Balancer is the load balancer's ID.
	Balancer string
	// Protocol is tcp, udp or sctp; empty while there is neither a listener nor a pool.
	Protocol string
	Enabled  bool
	VIP      VIP
	// Additional VIPs, in their order.
	Additional []VIP
	// Switches has by a switch's name how many VIPs and members of the row it has.
	Switches Counts
	// Routers are names.
	Routers   []string
	Listeners []Listener
	Pools     []Pool
	// Status has members' states by their IDs.
	Status States
	// Monitors are IDs of health monitors.
	Monitors []string
	// Affinity is options:affinity_timeout, seconds; empty for none.
	Affinity string
	// Other keys of external_ids and options.
	Other, OtherOptions map[string]string
	// Checks and Mappings are health_check and ip_port_mappings.
	Checks   []string
	Mappings map[string]string
}

// VIP is an address that clients use.
type VIP struct {
	Address netip.Addr
	// Port is the ID of its Neutron port; empty if the row names none.
	Port string
	// FloatingIP is invalid for none.
	FloatingIP netip.Addr
}

// Listener takes what comes to a port of the VIPs.
type Listener struct {
	ID      string
	Port    int
	Pool    string // an ID, or empty
	Enabled bool
}

// Pool is a set of members.
type Pool struct {
	ID      string
	Enabled bool
	Members []Member
}

// Member is a backend.
type Member struct {
	ID     string // empty in rows of older providers
	Addr   netip.AddrPort
	Subnet string // an ID; empty in rows of older providers
}

// selectionFields are what 8.0.0 hashes: SOURCE_IP_PORT.
func selectionFields() []string { return []string{"ip_dst", "ip_src", "tp_dst", "tp_src"} }

// Is tells whether a row is a load balancer of the provider's: others write Load_Balancer rows, too.
func Is(row *nb.LoadBalancer) bool {
	_, has := row.ExternalIDs[keyVIP]
	return has && row.Name != ""
}

// Weigh has Sluice's eBPF give a backend another share of new flows, of 0 to 256; 1 is that of each. OVN balances
// evenly.
func (r *Row) Weigh(backend netip.AddrPort, weight int) {
	key := backend.String() + "="
	words := slices.DeleteFunc(list(r.OtherOptions[optionWeights]), func(w string) bool { return strings.HasPrefix(w, key) })
	if weight != 1 {
		words = append(words, key+strconv.Itoa(weight))
	}
	r.OtherOptions = maps.Clone(r.OtherOptions)
	if delete(r.OtherOptions, optionWeights); len(words) > 0 {
		keep(&r.OtherOptions, optionWeights, strings.Join(words, ","))
	}
}

// VIPPort is the ID of the port of a row's first VIP; none if it names none.
func VIPPort(row *nb.LoadBalancer) []string { return list(row.ExternalIDs[keyVIPPort]) }

// VIPPortIs asks a server for rows by it.
func VIPPortIs(port string) ovsdb.Clause { return ovsdb.IncludesPair("external_ids", keyVIPPort, port) }

// Ports are the IDs of the ports of a row's VIPs, also of a row that cannot be read.
func Ports(row *nb.LoadBalancer) []string {
	return append(list(row.ExternalIDs[keyVIPPort]), list(row.ExternalIDs[keyAdditionalPorts])...)
}

// Parse reads a row. What of it cannot be read is an error that names the key.
func Parse(row *nb.LoadBalancer) (Row, error) {
	r := Row{UUID: row.UUID, Balancer: row.Name, Enabled: true, Checks: row.HealthCheck, Mappings: row.IPPortMappings, Affinity: row.Options[optionAffinity]}
	if row.Protocol != nil {
		r.Protocol = *row.Protocol
	}
	for k, v := range row.Options {
		if k != optionAffinity {
			keep(&r.OtherOptions, k, v)
		}
	}
	var errs []error
	for _, k := range slices.Sorted(maps.Keys(row.ExternalIDs)) {
		if err := r.take(k, row.ExternalIDs[k]); err != nil {
			errs = append(errs, fmt.Errorf("load balancer %s: external_ids:%s: %w", row.Name, k, err))
		}
	}
	errs = append(errs, r.takeVIPs(row.ExternalIDs))
	return r, errors.Join(errs...)
}

func keep(to *map[string]string, k, v string) {
	if *to == nil {
		*to = map[string]string{}
	}
	(*to)[k] = v
}

func (r *Row) take(key, value string) (err error) {
	switch {
	case key == keyEnabled:
		r.Enabled = value == "True"
	case slices.Contains([]string{keyVIP, keyVIPPort, keyVIPFIP, keyAdditional, keyAdditionalPorts, keyAdditionalFIPs}, key): // takeVIPs
	case key == keySwitches:
		err = r.Switches.UnmarshalJSON([]byte(value))
	case key == keyRouters:
		r.Routers = list(value)
	case key == keyStatus:
		err = r.Status.UnmarshalJSON([]byte(value))
	case key == keyMonitors:
		err = json.Unmarshal([]byte(value), &r.Monitors)
	case strings.HasPrefix(key, listenerPrefix):
		err = r.takeListener(key, value)
	case strings.HasPrefix(key, poolPrefix):
		err = r.takePool(key, value)
	default:
		keep(&r.Other, key, value)
	}
	return err
}

func list(value string) []string {
	if value == "" {
		return nil
	}
	return strings.Split(value, ",")
}

// takeVIPs reads the lists that belong together.
func (r *Row) takeVIPs(ids map[string]string) error {
	addresses := append([]string{ids[keyVIP]}, list(ids[keyAdditional])...)
	ports := append([]string{ids[keyVIPPort]}, list(ids[keyAdditionalPorts])...)
	floating := append([]string{ids[keyVIPFIP]}, list(ids[keyAdditionalFIPs])...)
	for i, text := range addresses {
		var v VIP
		var err error
		if v.Address, err = netip.ParseAddr(text); err != nil {
			return fmt.Errorf("load balancer %s: a VIP: %w", r.Balancer, err)
		}
		if i < len(ports) {
			v.Port = ports[i]
		}
		if i < len(floating) && floating[i] != "" {
			if v.FloatingIP, err = netip.ParseAddr(floating[i]); err != nil {
				return fmt.Errorf("load balancer %s: floating IP of a VIP: %w", r.Balancer, err)
			}
		}
		if i == 0 {
			r.VIP = v
		} else {
			r.Additional = append(r.Additional, v)
		}
	}
	return nil
}

func (r *Row) takeListener(key, value string) error {
	id, disabled := strings.CutSuffix(strings.TrimPrefix(key, listenerPrefix), disabledSuffix)
	port, pool, _ := strings.Cut(value, ":")
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("%q is not <port>:pool_<id>", value)
	}
	pool, _ = strings.CutSuffix(strings.TrimPrefix(pool, poolPrefix), disabledSuffix)
	if pool == "None" { // what 8.0.0 writes when a pool is taken away
		pool = ""
	}
	r.Listeners = append(r.Listeners, Listener{ID: id, Port: int(n), Pool: pool, Enabled: !disabled})
	return nil
}

func (r *Row) takePool(key, value string) error {
	id, disabled := strings.CutSuffix(strings.TrimPrefix(key, poolPrefix), disabledSuffix)
	p := Pool{ID: id, Enabled: !disabled}
	for _, text := range list(value) {
		m, err := parseMember(text)
		if err != nil {
			return err
		}
		p.Members = append(p.Members, m)
	}
	r.Pools = append(r.Pools, p)
	return nil
}

// parseMember reads member_<id>_<address>:<port>_<subnet>, or the older <address>:<port>.
func parseMember(text string) (m Member, err error) {
	endpoint := text
	if rest, is := strings.CutPrefix(text, memberPrefix); is {
		parts := strings.Split(rest, "_")
		if len(parts) < 2 || len(parts) > 3 {
			return m, fmt.Errorf("%q is not member_<id>_<address>:<port>_<subnet>", text)
		}
		m.ID, endpoint = parts[0], parts[1]
		if len(parts) == 3 {
			m.Subnet = parts[2]
		}
	}
	colon := strings.LastIndexByte(endpoint, ':')
	if colon < 0 {
		return m, fmt.Errorf("%q has no port", text)
	}
	addr, err := netip.ParseAddr(strings.Trim(endpoint[:colon], "[]"))
	if err != nil {
		return m, fmt.Errorf("member %q: %w", text, err)
	}
	port, err := strconv.ParseUint(endpoint[colon+1:], 10, 16)
	if err != nil {
		return m, fmt.Errorf("member %q: its port is no number up to 65535", text)
	}
	m.Addr = netip.AddrPortFrom(addr, uint16(port))
	return m, nil
}

// String is the member as a row has it. IPv6 addresses have no brackets there.
func (m Member) String() string {
	return fmt.Sprintf("%s%s_%s:%d_%s", memberPrefix, m.ID, m.Addr.Addr(), m.Addr.Port(), m.Subnet)
}

// Empty tells whether it has neither a listener nor a pool: it has no protocol then, or goes if
// its load balancer has other rows.
func (r Row) Empty() bool { return len(r.Listeners) == 0 && len(r.Pools) == 0 }

// HasFamily tells whether the row has a VIP of an address' family.
func (r Row) HasFamily(a netip.Addr) bool {
	return slices.ContainsFunc(slices.Concat([]VIP{r.VIP}, r.Additional), func(v VIP) bool { return v.Address.Is4() == a.Is4() })
}

// Compare orders the rows of a load balancer.
func Compare(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.UUID, b.UUID))
}
