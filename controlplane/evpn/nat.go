package evpn

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// Logical_Router.options: what balanced packets, and what packets of DNAT get as their source.
const (
	optionForceSNAT     = "lb_force_snat_ip"
	optionForceSNATDNAT = "dnat_force_snat_ip"
)

// natFacts is what is known of a router's address translation.
type natFacts struct {
	known bool
	// pending: not known, and about to be: the Northbound session has not
	// brought the router's rows yet.
	pending bool
	// rules are the logical addresses whose packets get another source.
	rules []netip.Prefix
	// sources are the addresses that they get; anySource: the router may use
	// any address of its ports.
	sources   []netip.Addr
	anySource bool
}

func readNAT(rows *ovn.Rows, router ovn.UUID) natFacts {
	list, ok := rows.NATOf(router)
	if !ok {
		return natFacts{pending: rows.ExpectsNB()}
	}
	f := natFacts{known: true}
	if lr, ok := rows.Router(router); ok {
		// Load balancers and DNAT can be told to use the router's own
		// addresses as source.
		f.anySource = lr.Options[optionForceSNAT] != "" || lr.Options[optionForceSNATDNAT] != ""
		for word := range strings.FieldsSeq(lr.Options[optionForceSNAT] + " " + lr.Options[optionForceSNATDNAT]) {
			if a, err := netip.ParseAddr(word); err == nil {
				f.sources = append(f.sources, a)
			}
		}
	}
	for _, n := range list {
		if n.Type != "snat" && n.Type != "dnat_and_snat" {
			continue
		}
		if a, err := netip.ParseAddr(n.ExternalIP); err == nil {
			f.sources = append(f.sources, a)
		}
		// Limited by allowed_ext_ips or exempted_ext_ips: whoever limited it
		// has decided which peers see the real address.
		if n.Conditional {
			continue
		}
		if p, err := ovn.ParseCIDR(n.LogicalIP); err == nil {
			f.rules = append(f.rules, p.Masked())
		} else if p, err := netip.ParsePrefix(n.LogicalIP); err == nil {
			f.rules = append(f.rules, p.Masked()) // 0.0.0.0/0 is a valid rule
		}
	}
	slices.SortFunc(f.rules, comparePrefix)
	f.rules = slices.Compact(f.rules)
	return f
}

// forced is what a router gives balanced packets another source for.
type forced struct{ v4, v6 bool }

func (f forced) of(a netip.Addr) bool { return a.Is4() && f.v4 || a.Is6() && f.v6 }

// forcedSNAT reads Logical_Router.options:lb_force_snat_ip: addresses of one or both families,
// or router_ip. What cannot be read may be either. Which routers heed it, gateway routers alone
// or those with a gateway port, too, depends on OVN's version.
func forcedSNAT(rows *ovn.Rows, router ovn.UUID) (f forced) {
	lr, _ := rows.Router(router)
	for word := range strings.FieldsSeq(lr.Options[optionForceSNAT]) {
		a, err := netip.ParseAddr(word)
		f.v4 = f.v4 || err != nil || a.Is4()
		f.v6 = f.v6 || err != nil || a.Is6()
	}
	return f
}

// isSource tells whether translated packets may carry an address.
func (f natFacts) isSource(a netip.Addr) bool { return f.anySource || slices.Contains(f.sources, a) }

// covers tells whether one rule translates all of a subnet.
func (f natFacts) covers(p netip.Prefix) bool {
	return slices.ContainsFunc(f.rules, func(r netip.Prefix) bool { return r.Bits() <= p.Bits() && r.Overlaps(p) })
}

// within lists the rules for parts of a subnet.
func (f natFacts) within(p netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, r := range f.rules {
		if r.Bits() > p.Bits() && r.Overlaps(p) {
			out = append(out, r)
		}
	}
	return out
}
