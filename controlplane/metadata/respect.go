package metadata

import (
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/controlplane/vmports"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// The metadata addresses.
var (
	metadata4 = netip.AddrFrom4([4]byte{169, 254, 169, 254})
	metadata6 = netip.MustParseAddr("fe80::a9fe:a9fe")
)

// verdict tells whether the ACLs of a port let it ask for metadata, from each of its
// addresses. A port of IPv4 alone is not asked about IPv6: what it may have is the same.
func (b *build) verdict(p *port) acl.Verdict {
	v := b.judge(p)
	b.verdicts[p.Port] = v
	return v
}

func (b *build) judge(p *port) acl.Verdict {
	if b.before != nil {
		if v, known := b.before[p.Port]; known {
			return v
		}
		return acl.Verdict{Detail: "the Northbound database is not in sync"}
	}
	acls, groups, known := b.rows.ACLsOf(p.Port, p.row.Datapath)
	if !known {
		return acl.Verdict{Detail: "the port's ACLs are not known: there is no session with the Northbound database, or it does not have them"}
	}
	rules := rulesOf(acls)
	out := acl.Verdict{Allowed: acl.Yes}
	for _, g := range asking(p.addresses) {
		packet := acl.Packet{Port: p.Port, Groups: groups, MAC: g.MAC, Src: g.Addr, Dst: metadata4, Protocol: 6, DstPort: 80}
		if !g.Addr.Is4() {
			// It asks from a link-local address, which nobody knows.
			packet.Src, packet.Dst = netip.Addr{}, metadata6
		}
		if v := b.book.Decide(rules, packet, b.rows.AddressSet, b.rows.DefaultACLDrop()); out.Detail == "" || v.Allowed < out.Allowed {
			out = v
		}
	}
	return out
}

// rulesOf are ACLs as package acl reads them.
func rulesOf(acls []ovn.ACL) []acl.Rule {
	out := make([]acl.Rule, len(acls))
	for i, a := range acls {
		out[i] = acl.Rule{Priority: a.Priority, Tier: a.Tier, Action: a.Action, Match: a.Match, AfterLB: a.AfterLB}
	}
	return out
}

// asking are the addresses by which requests differ. A MAC alone is one of IPv6 only where
// the port has no address of IPv4 at all.
func asking(list []intent.PortAddress) (out []intent.PortAddress) {
	four := false
	for _, g := range list {
		four = four || g.Addr.Is4()
	}
	for _, g := range list {
		if g.Addr.IsValid() || !four {
			out = append(out, g)
		}
	}
	return out
}

// leave leaves a port that has a tap to OVN, whose ACLs decide then: with a namespace
// where they may let it through.
func (b *build) leave(p *port, v acl.Verdict) {
	if v.Allowed == acl.No {
		p.Via = ViaOVN
		p.say(status.Withheld, reason.ACLDenied, "OVN would drop the requests: "+v.Detail)
		return
	}
	because := vmports.Lack{State: status.Warning, Reason: reason.ACLUnknown, Detail: "it is not known whether OVN would pass the requests: " + v.Detail, Elsewhere: true}
	if b.cfg.Path == PathAuto && p.network.unusable() == "" {
		b.byNamespace(p, because)
		return
	}
	p.Via = ViaOVN
	p.say(because.State, because.Reason, because.Detail)
}
