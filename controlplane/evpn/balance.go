package evpn

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// VIP is a VIP of the router of a gateway port.
type VIP struct {
	// Balancer is the name of the row of NB Load_Balancer, or its _uuid where it has none.
	Balancer string
	VIP      loadbalancer.VIP
	Choice   loadbalancer.Choice
	// Foreign: the address is none of the VRF's.
	Foreign bool
}

// balancersPending tells whether load balancers of the router are still to come.
func (t *translation) balancersPending() bool {
	if !t.cfg.LoadBalancing || !t.rows.ExpectsNB() {
		return false
	}
	_, known := t.rows.BalancersOf(t.out.Router)
	return !known
}

// balancers puts the VIPs of the router behind its first gateway port of each VNI.
func (t *translation) balancers() {
	// While it is to come what the router translates, no backend is seen to be reached:
	// OVN would take the VIPs over for that moment.
	if !t.cfg.LoadBalancing || t.nat.pending {
		return
	}
	rows, known := t.rows.BalancersOf(t.out.Router)
	if !known {
		t.out.Unbalanced = !t.rows.ExpectsNB() && !t.quiet && len(t.out.Gateways) > 0
		return
	}
	size, err := loadbalancer.CloudSize(t.rows.TableSize())
	if err != nil {
		t.fail(kindBalancer, "NB_Global", reason.BadLoadBalancer, err)
	}
	seen := map[intent.VNI]bool{}
	behind := t.behind()
	for i := range t.out.Gateways {
		if g := &t.out.Gateways[i]; !seen[g.Gateway.VNI] && len(rows) > 0 {
			seen[g.Gateway.VNI] = true
			g.Behind, g.Translated = behind, t.nat.rules
			for _, row := range rows {
				t.balancer(g, row, size, len(seen) == 1)
			}
		}
	}
}

// behind are the networks of the router's interfaces; none while it is not known what OVN
// translates.
func (t *translation) behind() (out []netip.Prefix) {
	if !t.nat.known {
		return nil
	}
	for _, i := range t.rows.Interfaces(t.out.Router) {
		list, _ := ovn.ParseMACColumn(i.RouterPort.MAC) // what is wrong with it matters to who exposes it
		for _, a := range list {
			for _, n := range a.Prefixes {
				if p := n.Masked(); !p.Addr().IsLinkLocalUnicast() && p.Bits() > 0 {
					out = append(out, p)
				}
			}
		}
	}
	return out
}

// balancer reads a row for a gateway port; what is wrong with it is said once.
func (t *translation) balancer(g *GatewayResult, row ovn.LoadBalancer, size int, first bool) {
	name, force := cmp.Or(row.Name, string(row.UUID)), forcedSNAT(t.rows, t.out.Router)
	for _, v := range t.readings.VIPs(row, size, func(err error) {
		if first {
			t.fail(kindBalancer, name, reason.BadLoadBalancer, err)
		}
	}) {
		out := VIP{Balancer: name, VIP: v, Choice: loadbalancer.Choose(v, g.outside)}
		a := v.Address.Addr()
		if out.Choice.Path == loadbalancer.PathEBPF && force.of(a) && !v.SkipSNAT {
			out.Choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.ForcedSNAT, Detail: "options:lb_force_snat_ip of the router, and no options:skip_snat of the load balancer"}
		}
		switch {
		case intent.Martian(host(a)):
			out.Foreign = true
		case g.onProvider(a):
			out.Foreign = true
			out.Choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.ProviderVIP, Detail: fmt.Sprintf("%s is on the network of gateway port %s", a, g.Gateway.LogicalPort)}
		case (slices.Contains(t.nat.sources, a) || t.nat.anySource && g.has(a)) && !t.servesDefault(a.Is4(), *g):
			// It would have what the router translates come here, and lead nowhere.
			out.Foreign = true
			out.Choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.SNATSource, Detail: fmt.Sprintf("%s may be the source of packets that the router translates, and its default next hop is not served by Sluice", a)}
		}
		g.VIPs = append(g.VIPs, out)
	}
}

// onProvider tells whether an address is on a network of the gateway port, and not the
// port's own.
func (g *GatewayResult) onProvider(a netip.Addr) bool {
	return !g.has(a) && slices.ContainsFunc(g.Networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// has tells whether an address is the gateway port's own.
func (g *GatewayResult) has(a netip.Addr) bool {
	return slices.ContainsFunc(g.Networks, func(n netip.Prefix) bool { return n.Addr() == a })
}

// outside tells why packets do not get to an address behind the gateway port, and back, as
// they are; empty: they do.
func (g *GatewayResult) outside(a netip.Addr) string {
	in := func(p netip.Prefix) bool { return p.Contains(a) }
	switch {
	case g.exposes(a):
		return ""
	case !slices.ContainsFunc(g.Behind, in):
		return "in no network of the router"
	case slices.ContainsFunc(g.Translated, in):
		return "translated by the router"
	}
	return ""
}

func (g *GatewayResult) exposes(a netip.Addr) bool {
	return slices.ContainsFunc(g.Subnets, func(s Subnet) bool {
		return s.Prefix.Contains(a) && !slices.ContainsFunc(s.Blocks, func(b netip.Prefix) bool { return b.Contains(a) })
	})
}

// balance adds the VIPs of a gateway port. They come after all other addresses: one that
// is a host's or the port's own, too, stays what it is for all else.
func (b *vrfBuild) balance(m member) {
	answers := map[netip.Addr]bool{} // whether one of the VIPs of an address is to be reached
	for _, v := range m.VIPs {
		row, choice := v.VIP.Intent(b.vni), v.Choice
		if v.Foreign {
			b.balanced = append(b.balanced, loadbalancer.Balanced{Balancer: v.Balancer, VIP: row, Backends: v.VIP.Backends, Choice: choice, Standby: m.Standby})
			continue
		}
		if owner, ok := b.vips[row.Key]; ok {
			b.fail(m, kindBalancer, v.Balancer, reason.DuplicateAddress, fmt.Errorf("VIP %s belongs to %s", row.Key, owner))
			continue
		}
		if err := b.refuseVIP(m, row.Key.Addr); err != nil {
			b.fail(m, kindBalancer, v.Balancer, reason.Overlap, fmt.Errorf("VIP %s: %w", row.Key, err))
			continue
		}
		b.vips[row.Key] = v.Balancer
		if b.choice.Path == intent.PathKernel {
			choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.KernelPath, Detail: "the VRF is on the kernel path"}
		}
		if choice.Path == loadbalancer.PathEBPF {
			if err := b.backends(m, row); err != nil {
				choice = loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.BackendOutside, Detail: err.Error()}
			}
		}
		b.balanced = append(b.balanced, loadbalancer.Balanced{Balancer: v.Balancer, VIP: row, Backends: v.VIP.Backends, Choice: choice, Standby: m.Standby})
		if choice.Path == loadbalancer.PathEBPF {
			wanted.Put(b.tables, intent.VIPs, row)
		} else {
			wanted.Put(b.tables, intent.VIPs, row.ByOVN())
		}
		answered := v.VIP.Answers()
		if choice.Path == loadbalancer.PathOVN {
			answered = v.VIP.Reached()
		}
		answers[row.Key.Addr] = answers[row.Key.Addr] || answered
	}
	for a, yes := range answers {
		b.vipAddress(m, a, yes)
	}
}

// backends adds ways for packets that are balanced, and for answers, to backends that no route
// of the VRF leads to: those of networks that are not exposed, and ports that are opted out.
func (b *vrfBuild) backends(m member, v intent.VIP) error {
	var hidden []intent.Backend
	for _, backend := range v.Backends.All() {
		key := intent.NewHostKey(b.vni, backend.Addr)
		if m.Standby {
			continue
		}
		// Subnets of two routers do not overlap.
		if c, inside := b.overlapping(host(backend.Addr), func(c claim) bool { return c.router == m.router }); inside {
			return fmt.Errorf("backend %s is in %s of %s, too", backend.Addr, c.prefix, c.object)
		}
		switch route, there := wanted.Rows(b.tables, intent.Routes)[key]; {
		case there && route.Kind == intent.RouteLocal && route.Gateway != m.Gateway.Key && !m.exposes(backend.Addr):
			return fmt.Errorf("backend %s has an address that is exposed behind gateway %s", backend.Addr, route.Gateway)
		case there && route.Kind == intent.RouteLocal || !there && m.exposes(backend.Addr):
			continue
		}
		if other, taken := wanted.Rows(b.tables, intent.BackendRoutes)[key]; taken && other.Gateway != m.Gateway.Key {
			return fmt.Errorf("backend %s has the address of one behind gateway %s", backend.Addr, other.Gateway)
		}
		hidden = append(hidden, backend)
	}
	for _, backend := range hidden {
		key := intent.NewHostKey(b.vni, backend.Addr)
		wanted.Put(b.tables, intent.BackendRoutes, intent.BackendRoute{Key: key, Gateway: m.Gateway.Key})
		if !m.exposes(backend.Addr) {
			b.steerAnswers(m, backend, v.Key.Protocol)
		}
	}
	return nil
}

// refuseVIP tells why the address of a VIP cannot lead to the gateway port.
func (b *vrfBuild) refuseVIP(m member, a netip.Addr) error {
	switch route, there := wanted.Rows(b.tables, intent.Routes)[intent.NewHostKey(b.vni, a)]; {
	case there && route.Kind != intent.RouteLocal:
		return errors.New("the address is blocked")
	case there && route.Gateway != m.Gateway.Key:
		return errors.New("the address is behind another gateway port")
	case there:
		return nil
	}
	if c, inside := b.overlapping(host(a), func(c claim) bool { return c.router == m.router }); inside {
		return fmt.Errorf("the address is in %s of %s", c.prefix, c.object)
	}
	return nil
}

// vipAddress has the address of VIPs lead to the gateway port, and be balanced there. It is
// announced while one of them answers.
func (b *vrfBuild) vipAddress(m member, a netip.Addr, answers bool) {
	key := intent.NewHostKey(b.vni, a)
	if _, there := wanted.Rows(b.tables, intent.Routes)[key]; !there {
		b.local(m, host(a), answers)
		if announced, yes := wanted.Rows(b.tables, intent.Announcements)[key]; yes {
			announced.VIPs = true
			wanted.Put(b.tables, intent.Announcements, announced)
		}
		// What comes from a subnet is steered as such.
		if _, inside := b.overlapping(host(a), func(claim) bool { return false }); !inside {
			b.steer(m, intent.SteerSource, host(a))
		}
	}
	if route, there := wanted.Rows(b.tables, intent.Routes)[key]; there && b.choice.Path != intent.PathKernel {
		route.VIP = true
		wanted.Put(b.tables, intent.Routes, route)
	}
}

// Balanced lists the VIPs of all VRFs, sorted.
func (t *Translator) Balanced() []loadbalancer.Balanced {
	var out []loadbalancer.Balanced
	for _, s := range t.vrfs {
		out = append(out, s.balanced...)
	}
	slices.SortFunc(out, func(a, b loadbalancer.Balanced) int { return a.VIP.Key.Compare(b.VIP.Key) })
	return out
}
