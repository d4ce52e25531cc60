package network

import (
	"hash/fnv"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// mostTriedBits bounds the search for a free address, to 65536 of them.
const mostTriedBits = 16

// portsByAddress finds ports by the addresses that they have.
var portsByAddress = northbound.Declare("addresses", func(lsp *nb.LogicalSwitchPort) (keys []string) {
	for _, a := range AddressesOf(lsp) {
		keys = append(keys, a.String())
	}
	return keys
}, nil)

// Used tells whether a port or router of a network has an address. A transaction that has asked rests on the
// network's ports: none comes meanwhile.
func Used(r northbound.Reader, n Network, a netip.Addr) bool { return users(r, n)(a) }

func users(r northbound.Reader, n Network) (used func(netip.Addr) bool) {
	ls, ok := northbound.Get[*nb.LogicalSwitch](r, n.Row, "ports")
	if !ok {
		return func(netip.Addr) bool { return false }
	}
	routers := map[netip.Addr]bool{}
	for _, i := range Interfaces(r, ls) {
		for _, p := range i.Networks {
			routers[p.Addr()] = true
		}
	}
	return func(a netip.Addr) bool {
		return routers[a] || slices.ContainsFunc(northbound.Find(r, portsByAddress, a.String()), func(lsp *nb.LogicalSwitchPort) bool {
			return slices.Contains(ls.Ports, lsp.UUID)
		})
	}
}

// Port is whose a port is.
type Port struct {
	// Project is that of its owner; empty if nobody knows.
	Project string
	// User is what has it: a VM, a router, a VIP of the controller's; empty for nothing.
	User string
}

// NewPort reads type and external_ids of a port.
func NewPort(lsp *nb.LogicalSwitchPort) Port {
	p := Port{Project: lsp.ExternalIDs[keyProject], User: lsp.ExternalIDs[keyOwner]}
	if p.User == "" {
		p.User = lsp.Type // OVN's own: a router's, a physical network's
	}
	if owner := lsp.ExternalIDs[keyDeviceOwner]; p.User == "" && (strings.HasPrefix(owner, "compute:") || strings.HasPrefix(owner, "network:")) {
		p.User = owner
	}
	return p
}

// AddressesOf are the addresses that a port has: Neutron's note of them, or OVN's.
func AddressesOf(lsp *nb.LogicalSwitchPort) (out []netip.Addr) {
	texts := append([]string{lsp.ExternalIDs[keyCIDRs]}, lsp.Addresses...)
	if lsp.DynamicAddresses != nil {
		texts = append(texts, *lsp.DynamicAddresses)
	}
	for _, word := range strings.Fields(strings.Join(texts, " ")) {
		a, err := netip.ParseAddr(word)
		if p, prefix := netip.ParsePrefix(word); prefix == nil {
			a, err = p.Addr(), nil
		}
		if err == nil && !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	return out
}

// Host tells whether an address of the subnet may be somebody's: it is not the network's own, nor of IPv4 the
// broadcast address.
func (s Subnet) Host(a netip.Addr) bool {
	first, last := s.CIDR.Masked().Addr(), advance(s.CIDR.Masked(), math.MaxUint64)
	return s.CIDR.Contains(a) && (s.CIDR.Bits() >= a.BitLen()-1 || a != first && (a.Is6() || a != last))
}

// excluded are the addresses that the switch's own configuration keeps from being given away, ovn-nb(5).
func excluded(ls *nb.LogicalSwitch) func(netip.Addr) bool {
	type span struct{ from, to netip.Addr }
	var spans []span
	for _, word := range strings.Fields(ls.OtherConfig[configExcluded]) {
		first, last, ranged := strings.Cut(word, "..")
		if !ranged {
			last = first
		}
		from, err := netip.ParseAddr(first)
		to, toErr := netip.ParseAddr(last)
		if err == nil && toErr == nil {
			spans = append(spans, span{from, to})
		}
	}
	return func(a netip.Addr) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return a.BitLen() == s.from.BitLen() && !a.Less(s.from) && !s.to.Less(a) })
	}
}

// exclude has OVN's own allocation of IPv4 keep off an address, or end to do so: a VIP's port has no address in OVN.
// It tells whether the switch is changed.
func exclude(tx *northbound.Tx, row string, a netip.Addr, off bool) bool {
	ls, ok := northbound.Get[*nb.LogicalSwitch](tx, row, "other_config")
	if !ok || !slices.ContainsFunc(own(ls), func(p netip.Prefix) bool { return a.Is4() && p.Contains(a) }) || off && excluded(ls)(a) {
		return false
	}
	words := strings.Fields(ls.OtherConfig[configExcluded])
	before := len(words)
	if words = slices.DeleteFunc(words, func(w string) bool { return w == a.String() }); off {
		words = append(words, a.String())
	}
	if len(words) == before {
		return false
	}
	config := maps.Clone(ls.OtherConfig)
	if delete(config, configExcluded); len(words) > 0 {
		config[configExcluded] = strings.Join(words, " ")
	}
	tx.Update(&nb.LogicalSwitch{UUID: row, OtherConfig: config}, "other_config")
	return true
}

// Free is an address of the subnet that nobody has, the same for the same seed and network. It is
// none of the prefix' ends, none that the switch excludes, and not the gateway: where there is none yet, not the first
// address, which OVN keeps for one.
func Free(r northbound.Reader, s Subnet, seed string) (netip.Addr, bool) {
	used, off := users(r, s.Network), func(netip.Addr) bool { return false }
	if ls, ok := northbound.Get[*nb.LogicalSwitch](r, s.Network.Row, "other_config"); ok {
		off = excluded(ls)
	}
	gateway := s.Gateway
	if !gateway.IsValid() {
		gateway = s.CIDR.Masked().Addr().Next()
	}
	first, last := s.CIDR.Masked().Addr(), advance(s.CIDR.Masked(), math.MaxUint64)
	h := fnv.New64a()
	_, _ = h.Write([]byte(seed)) // a hash takes all
	a := advance(s.CIDR.Masked(), h.Sum64())
	for range 1 << min(mostTriedBits, s.CIDR.Addr().BitLen()-s.CIDR.Bits()) {
		if a != first && a != last && a != gateway && !off(a) && !used(a) {
			return a, true
		}
		if a = a.Next(); !s.CIDR.Contains(a) {
			a = first
		}
	}
	return netip.Addr{}, false
}

// advance is an address of the prefix that a number chooses.
func advance(p netip.Prefix, by uint64) netip.Addr {
	raw := p.Addr().AsSlice()
	bits := len(raw)*8 - p.Bits()
	for i := len(raw) - 1; bits > 0 && i >= 0; i-- {
		mask := byte(0xff)
		if bits < 8 {
			mask = byte(1<<bits - 1)
		}
		raw[i] |= byte(by) & mask
		by >>= 8
		bits -= 8
	}
	a, _ := netip.AddrFromSlice(raw)
	return a
}

// ownerOf is the ID of the load balancer that a port's owner names: ovn-lb-vip-ID, ovn-lb-vip-additional-N-ID.
func ownerOf(lsp *nb.LogicalSwitchPort) string {
	id := strings.TrimPrefix(lsp.ExternalIDs[keyOwner], "ovn-lb-vip-")
	if numbered, is := strings.CutPrefix(id, "additional-"); is {
		_, id, _ = strings.Cut(numbered, "-")
	}
	return id
}

// ownedPorts finds the controller's ports by their load balancers.
var ownedPorts = northbound.Declare("external_ids", func(lsp *nb.LogicalSwitchPort) []string {
	if lsp.ExternalIDs[keyOwner] == "" {
		return nil
	}
	return []string{ownerOf(lsp)}
}, nil)

// OwnedBy are the ports that the controller has made for a load balancer.
func OwnedBy(r northbound.Reader, balancer string) []*nb.LogicalSwitchPort {
	return northbound.Find(r, ownedPorts, balancer, "name", "external_ids")
}

// Owners are the load balancers, which may be gone, that the controller has made ports for.
func Owners(s *northbound.Snapshot) (ids []string) {
	for lsp := range northbound.All[*nb.LogicalSwitchPort](s) {
		if lsp.ExternalIDs[keyOwner] != "" {
			ids = append(ids, ownerOf(lsp))
		}
	}
	return ids
}

// AddPort inserts the port of a VIP into a network, under an ID that is also its UUID. It has no
// address of its own in OVN, as Neutron's ports of VIPs have none: what comes to the VIP is
// balanced before it would get to the port.
func AddPort(tx *northbound.Tx, id, name, project string, s Subnet, a netip.Addr) {
	ids := map[string]string{
		keyPortName: name, keyCIDRs: netip.PrefixFrom(a, s.CIDR.Bits()).String(), keyProject: project, keyName: s.Network.Switch, keyOwner: name,
	}
	if exclude(tx, s.Network.Row, a, true) {
		ids[keyExcluded] = "true"
	}
	tx.Insert(&nb.LogicalSwitchPort{UUID: id, Name: id, Enabled: new(true), ExternalIDs: ids})
	setPorts(tx, s.Network.Row, func(ports []string) []string { return append(ports, id) })
}

// RemovePort takes a port away that AddPort made under a name; another one stays.
func RemovePort(tx *northbound.Tx, id, name string) {
	lsp, ok := northbound.One(tx, northbound.SwitchPortByName, id, "external_ids")
	if !ok || lsp.ExternalIDs[keyOwner] != name {
		return
	}
	for _, ls := range northbound.Find(tx, northbound.SwitchOfPort, lsp.UUID) {
		setPorts(tx, ls.UUID, func(ports []string) []string {
			return slices.DeleteFunc(ports, func(p string) bool { return p == lsp.UUID })
		})
		if lsp.ExternalIDs[keyExcluded] == "" {
			continue // somebody else has excluded the address, or nobody
		}
		for _, a := range AddressesOf(lsp) {
			exclude(tx, ls.UUID, a, false)
		}
	}
}

// Release removes all ports that the controller has made for a load balancer.
func Release(tx *northbound.Tx, balancer string) {
	for _, lsp := range OwnedBy(tx, balancer) {
		RemovePort(tx, lsp.Name, lsp.ExternalIDs[keyOwner])
	}
}

// setPorts changes a switch's ports. What others add and take away there meanwhile stays: the column is
// not guarded.
func setPorts(tx *northbound.Tx, row string, change func([]string) []string) {
	if ls, ok := northbound.Peek[*nb.LogicalSwitch](tx, row); ok {
		tx.Update(&nb.LogicalSwitch{UUID: row, Ports: change(slices.Clone(ls.Ports))}, "ports")
	}
}
