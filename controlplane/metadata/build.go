package metadata

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vmports"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// port is a port while it is decided on.
type port struct {
	PortStatus
	row       ovn.PortBinding
	network   *network // nil while its row is not there
	addresses []intent.PortAddress
}

// build is one computation.
type build struct {
	rows     *ovn.Rows
	cfg      Config
	taps     vmports.Taps
	networks map[ovn.UUID]*network
	ports    []*port // by name
	tables   wanted.Set
	reports  []status.Object
	// early: rows of switches may still be to come, and those of their metadata ports. Ports
	// that are served are left out.
	early  bool
	served map[string]intent.MetadataPort
	// conflict: two switches here have one name.
	conflict bool
	// verdicts are what ACLs say of ports; before, when set, is what they said: they are
	// not looked at.
	book             *acl.Book
	verdicts, before map[string]acl.Verdict
}

func (b *build) compute() {
	b.taps.Here, b.networks, b.tables = map[string]ovn.PortBinding{}, map[ovn.UUID]*network{}, wanted.NewSet()
	for _, p := range b.rows.ServedPorts() {
		// The name is an index of the table; two rows with one are two moments.
		if _, twice := b.taps.Here[p.LogicalPort]; twice {
			continue
		}
		b.taps.Here[p.LogicalPort] = p
		if _, left := b.served[p.LogicalPort]; !left {
			b.ports = append(b.ports, &port{row: p, PortStatus: PortStatus{Port: p.LogicalPort, Via: ViaNone}})
		}
	}
	for _, p := range b.ports {
		b.read(p)
	}
	taken := map[string]bool{}
	for _, id := range slices.Sorted(maps.Keys(b.networks)) {
		if n := b.networks[id]; n != nil {
			b.settle(id, n, taken)
		}
	}
	claimed := map[claim]string{}
	for _, p := range b.ports {
		if p.network != nil {
			p.Network = p.network.name
			b.decide(p, claimed)
		}
	}
	b.separate()
	for _, p := range b.ports {
		b.put(p)
	}
	for _, n := range b.networks {
		if n != nil && len(n.users) > 0 {
			wanted.Put(b.tables, intent.MetadataNetworks, b.row(n))
		}
	}
}

// read takes from a port's row what does not depend on others.
func (b *build) read(p *port) {
	p.Instance, p.Project = p.row.ExternalIDs[keyDeviceID], p.row.ExternalIDs[keyProjectID]
	if parent, ok := b.taps.Here[p.row.ParentPort]; ok && p.Instance == "" {
		// Neutron gives subports none: they are the VM's whose trunk it is.
		p.Instance, p.Project = parent.ExternalIDs[keyDeviceID], parent.ExternalIDs[keyProjectID]
	}
	var err error
	if p.addresses, err = portAddresses(p.row.MAC, p.row.ExternalIDs[keyCIDRs]); err != nil {
		p.say(status.Error, reason.BadMAC, err.Error())
	}
	p.Addresses = intent.NewPortAddressSet(p.addresses...)
	n, ok := b.network(p.row)
	if !ok {
		p.say(status.Pending, reason.NetworkMissing, "OVN has not sent the row of its switch yet")
		return
	}
	p.network = n
	n.addresses = append(n.addresses, ipsOf(p.addresses)...)
}

// claim is a tap and VLAN.
type claim struct {
	ifindex uint32
	vlan    uint16
}

func claimOf(t intent.Tap) claim { return claim{t.IfIndex, t.VLAN} }

// decide finds the way of a port's requests.
func (b *build) decide(p *port, claimed map[claim]string) {
	if len(p.addresses) == 0 {
		p.say(status.Withheld, reason.NoAddress, "the port has no MAC in its column mac, which would identify its requests")
		return
	}
	if b.cfg.Path == PathNamespace {
		b.byNamespace(p, vmports.Lack{})
		return
	}
	tap, why := b.taps.Of(p.row)
	if why.Reason == "" && b.cfg.Respect {
		if v := b.verdict(p); v.Allowed != acl.Yes {
			b.leave(p, v)
			return
		}
	}
	if why.Reason == "" {
		k := claimOf(tap)
		if first, there := claimed[k]; there {
			p.say(status.Error, reason.TapConflict, fmt.Sprintf("port %s has the tap %s with VLAN %d already", first, tap.Name, tap.VLAN))
			return
		}
		claimed[k] = p.Port
		p.Tap, p.Via = tap, ViaTap
		return
	}
	if why.Elsewhere && b.cfg.Path == PathAuto {
		b.byNamespace(p, why)
		return
	}
	if why.State == status.OK {
		why.State = status.Warning // with a namespace it would be served
	}
	p.say(why.State, why.Reason, why.Detail)
}

// byNamespace serves a port by its network's namespace, because of a lack of a tap or
// because it is to be so.
func (b *build) byNamespace(p *port, because vmports.Lack) {
	if why := p.network.unusable(); why != "" {
		if because.Reason != "" {
			why = because.Detail + "; " + why
		}
		p.say(status.Warning, reason.NoMetadataPort, why)
		return
	}
	p.Via = ViaNamespace
	p.network.users = append(p.network.users, p.Port)
	if because.Reason != "" {
		p.say(because.State, because.Reason, because.Detail)
	}
	for _, g := range p.addresses {
		if g.Addr.IsValid() && !p.network.answers(g.Addr) {
			p.say(status.Warning, reason.NoMetadataAddress, fmt.Sprintf("metadata port %s has no address in the subnet of %s: answers have no path back", p.network.port.LogicalPort, g.Addr))
		}
	}
}

// separate looks for ports that a namespace could not tell apart. An address that a port
// has which is in no table must not lead to another one's data either.
func (b *build) separate() {
	type key struct {
		network *network
		mac     intent.MAC // by which IPv6 link-local addresses are known
		addr    netip.Addr
	}
	holders := map[key][]*port{}
	each := func(p *port, see func(key)) {
		seen := map[key]bool{}
		for _, g := range p.addresses {
			for _, k := range []key{{network: p.network, mac: g.MAC}, {network: p.network, addr: g.Addr}} {
				if !seen[k] && (k.addr.IsValid() || !k.mac.IsZero()) {
					seen[k] = true
					see(k)
				}
			}
		}
	}
	for _, p := range b.ports {
		if p.network != nil && len(p.network.users) > 0 {
			each(p, func(k key) { holders[k] = append(holders[k], p) })
		}
	}
	for _, p := range b.ports {
		if p.Via != ViaNamespace {
			continue
		}
		hidden := map[key]bool{}
		each(p, func(k key) {
			for _, o := range holders[k] {
				if o == p {
					continue
				}
				what := k.addr.String()
				if !k.addr.IsValid() {
					what = k.mac.String()
				}
				p.say(status.Error, reason.DuplicateAddress, fmt.Sprintf("port %s on network %s has %s, too: in a namespace the two cannot be told apart, and requests from there are answered with 404", o.Port, p.Network, what))
				hidden[k] = hidden[k] || o.Via == ViaNone || o.Via == ViaOVN
			}
		})
		if len(hidden) > 0 {
			p.addresses = slices.DeleteFunc(p.addresses, func(g intent.PortAddress) bool {
				return hidden[key{network: p.network, mac: g.MAC}] || hidden[key{network: p.network, addr: g.Addr}]
			})
			p.Addresses = intent.NewPortAddressSet(p.addresses...)
		}
	}
}

// put makes the row of a port that is served.
func (b *build) put(p *port) {
	if p.Via != ViaTap && p.Via != ViaNamespace {
		return
	}
	if p.Instance == "" {
		p.say(status.Pending, reason.NoInstance, "external_ids:"+keyDeviceID+" is not set: requests are answered with 404")
	}
	answer := b.cfg.Answer
	if !p.network.mac.IsZero() {
		answer = p.network.mac
	}
	wanted.Put(b.tables, intent.MetadataPorts, intent.MetadataPort{
		Port: p.Port, Network: p.Network, Instance: p.Instance, Project: p.Project,
		Addresses: p.Addresses, Tap: p.Tap, Answer: answer,
	})
}

// networksOf lists the networks of ports that are served, sorted.
func networksOf(all wanted.Set) []string {
	set := map[string]struct{}{}
	for _, p := range wanted.Rows(all, intent.MetadataPorts) {
		set[p.Network] = struct{}{}
	}
	return slices.SortedFunc(maps.Keys(set), strings.Compare)
}

// switches are those with ports here, by the name that their networks have.
func (b *build) switches() map[string]ovn.UUID {
	out := map[string]ovn.UUID{}
	for id, n := range b.networks {
		if n != nil {
			out[n.name] = id
		}
	}
	return out
}
