package evpn

import (
	"maps"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// knownAddresses finds the addresses of the known ports of provider switches,
// and keeps them until a port changes: a thousand gateway ports may share one.
type knownAddresses struct {
	rows     *ovn.Rows
	switches map[ovn.UUID]knownSwitch
}

type knownSwitch struct {
	// version is ovn.Rows.PortsChanged of the switch.
	version   uint64
	addresses map[netip.Addr]struct{}
	// annotated are the ports that name a VNI.
	annotated map[string]annotation
}

func newKnownAddresses(rows *ovn.Rows) *knownAddresses {
	return &knownAddresses{rows: rows, switches: map[ovn.UUID]knownSwitch{}}
}

// on lists the addresses that the ports of a switch and their peers answer for
// (Port_Binding columns mac and nat_addresses).
func (k *knownAddresses) on(provider ovn.UUID) map[netip.Addr]struct{} {
	version := k.rows.PortsChanged(provider)
	if kept, ok := k.switches[provider]; ok && kept.version == version {
		return kept.addresses
	}
	set := map[netip.Addr]struct{}{}
	read := knownSwitch{version, set, map[string]annotation{}}
	for _, p := range k.rows.PortsOn(provider) {
		read.annotate(p)
		columns := [][]string{p.MAC, p.NATAddresses}
		if peer, ok := k.rows.Peer(p); ok {
			columns = append(columns, peer.MAC)
		}
		for _, column := range columns {
			list, _ := ovn.ParseMACColumn(column) // a bad element is that port's fault, and not a gateway's
			for _, a := range list {
				set[a.MAC.LinkLocal()] = struct{}{}
				for _, n := range a.Prefixes {
					set[n.Addr()] = struct{}{}
				}
			}
		}
	}
	k.switches[provider] = read
	return set
}

// follow makes the translator read rows from now on.
func (t *Translator) follow(rows *ovn.Rows) {
	if t.known != nil && t.known.rows == rows {
		return
	}
	t.known = newKnownAddresses(rows)
	for _, s := range t.segments {
		s.made = nil
	}
}

// answering is a prefix that a gateway port answers, except for the known ports
// of its provider switch.
type answering struct {
	segment  intent.GatewayKey
	provider ovn.UUID
	prefix   netip.Prefix
}

// segment is a bridge and VLAN on which gateway ports answer every address.
type segment struct {
	// uses counts the gateway ports by what they answer.
	uses map[answering]int
	// rows were made of these uses, and of these versions of the switches.
	made map[answering]uint64
	rows map[intent.ServedKey]intent.Served
}

// countAnswering counts what the gateway ports of a VRF answer, and notes the
// segments.
func (t *Translator) countAnswering(list []answering, by int, touched map[intent.GatewayKey]struct{}) {
	for _, a := range list {
		touched[a.segment] = struct{}{}
		s := t.segments[a.segment]
		if s == nil {
			s = &segment{uses: map[answering]int{}}
			t.segments[a.segment] = s
		}
		if s.uses[a] += by; s.uses[a] == 0 {
			delete(s.uses, a)
		}
	}
}

// denials makes the rows of the segments again where something changed, and adds
// those of before and those of now to the tables of the step.
func (t *Translator) denials(touched map[intent.GatewayKey]struct{}, old, next map[intent.ServedKey]intent.Served) {
	for key := range touched {
		s := t.segments[key]
		made := map[answering]uint64{}
		for a := range s.uses {
			made[a] = t.known.rows.PortsChanged(a.provider)
		}
		if len(made) > 0 && maps.Equal(made, s.made) {
			continue
		}
		maps.Copy(old, s.rows)
		s.made, s.rows = made, map[intent.ServedKey]intent.Served{}
		for a := range s.uses {
			for taken := range t.known.on(a.provider) {
				if a.prefix.Contains(taken) {
					k := intent.ServedKey{Gateway: key, Prefix: host(taken)}
					s.rows[k] = intent.Served{Key: k}
				}
			}
		}
		maps.Copy(next, s.rows)
		if len(s.uses) == 0 {
			delete(t.segments, key)
			// The switches of other segments are read again when they are asked for.
			clear(t.known.switches)
		}
	}
}
