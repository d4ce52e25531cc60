package tapbalancing

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/acl"
	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// mostWork bounds how many matches are looked at for the VMs of a switch that have the
// same ACLs: some 50 ms of work, when VIPs or ACLs change.
const mostWork = 100_000

// judged is what ACLs say of the VIPs of a switch that eBPF balances, by acl.Book.Identity.
type judged struct {
	vips []loadbalancer.VIP
	sets uint64 // ovn.Rows.AddressSetsChanged
	drop bool   // ovn.Rows.DefaultACLDrop
	by   map[string]loadbalancer.Choice
}

// still tells whether what was judged is what would be now. Health decides nothing: a
// backend that gets no new flows will again, or has some.
func (j judged) still(now judged) bool {
	return j.sets == now.sets && j.drop == now.drop && slices.EqualFunc(j.vips, now.vips, func(a, b loadbalancer.VIP) bool {
		return a.Protocol == b.Protocol && a.Address == b.Address &&
			slices.EqualFunc(a.Backends, b.Backends, func(x, y loadbalancer.Backend) bool { return x.Address == y.Address })
	})
}

// summon begins to judge, with what still counts of the last time.
func (d *draft) summon() {
	now := &d.out.judged
	if now.by != nil {
		return
	}
	now.sets, now.drop, now.by = d.rows.AddressSetsChanged(), d.rows.DefaultACLDrop(), map[string]loadbalancer.Choice{}
	if d.last != nil && !d.whole && d.last.judged.still(*now) {
		d.before = d.last.judged.by
	}
}

// byACLs decides by the ACLs that see what a VM sends. While rows are still to come
// those that are there are not all: of a port that is new, those of its groups come after it.
// What was decided counts until then; settled is false if nothing was.
func (d *draft) byACLs(p ovn.PortBinding) (choice loadbalancer.Choice, settled bool) {
	acls, groups, known := d.rows.ACLsOf(p.LogicalPort, p.Datapath)
	if !d.complete {
		before, decided := d.decided(p.LogicalPort)
		if !known || !decided {
			d.waits, known = true, false
		}
		if decided && !known {
			return before, true
		}
	}
	switch {
	case known:
		return d.judge(rulesOf(acls), p.LogicalPort, groups), true
	case d.cfg.TrustUnknown:
		return loadbalancer.Choice{Path: loadbalancer.PathEBPF, Reason: reason.PathAuto, Detail: "its ACLs are not known (loadBalancing.aclUnknown)"}, true
	}
	detail := "the port's ACLs are not known"
	if !d.complete {
		detail += " yet"
	}
	return loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.ACLUnknown, Detail: detail}, d.complete
}

// rulesOf are ACLs as package acl reads them.
func rulesOf(acls []ovn.ACL) []acl.Rule {
	out := make([]acl.Rule, len(acls))
	for i, a := range acls {
		out[i] = acl.Rule{Priority: a.Priority, Tier: a.Tier, Action: a.Action, Match: a.Match, AfterLB: a.AfterLB}
	}
	return out
}

// decided is what was decided on a VM by its ACLs, if it was and not only put off.
func (d *draft) decided(port string) (loadbalancer.Choice, bool) {
	if d.last == nil {
		return loadbalancer.Choice{}, false
	}
	at := slices.IndexFunc(d.last.vms, func(m VM) bool { return m.Port == port && m.Tap != intent.Tap{} && m.State != status.Pending })
	if at < 0 {
		return loadbalancer.Choice{}, false
	}
	return d.last.vms[at].Choice, true
}

// judge decides by known ACLs.
func (d *draft) judge(rules []acl.Rule, port string, groups map[string]bool) loadbalancer.Choice {
	identity := d.book.Identity(rules, port, groups)
	if identity == "" {
		return loadbalancer.Choice{Path: loadbalancer.PathEBPF, Reason: reason.PathAuto}
	}
	d.summon()
	choice, done := d.out.judged.by[identity]
	if !done {
		choice, done = d.before[identity]
	}
	if !done {
		choice = d.compare(d.book.Judge(rules, port, groups, d.rows.AddressSet, d.out.judged.drop))
	}
	d.out.judged.by[identity] = choice
	return choice
}

// compare has OVN's look at a packet to a VIP, which it has before it balances, compared with
// the one that it has when eBPF has balanced: for each VIP and each of its backends. A VM
// may send from any address: what its port may send from besides its own is for OVN to check.
func (d *draft) compare(j *acl.Judge) loadbalancer.Choice {
	for _, v := range d.out.judged.vips {
		for _, b := range v.Backends {
			if rule, differs := j.Differs(acl.Redirect{Protocol: uint8(v.Protocol), From: v.Address, To: b.Address}); differs {
				return byACL(fmt.Sprintf("%s may decide differently about VIP %s and its backend %s, which it would see", rule, endpoint(v.Address), endpoint(b.Address)))
			}
			if j.Work > mostWork {
				return byACL(fmt.Sprintf("the port's ACLs match destinations, and its switch has more VIPs than are compared (%d)", len(d.out.judged.vips)))
			}
		}
	}
	return loadbalancer.Choice{Path: loadbalancer.PathEBPF, Reason: reason.PathAuto}
}

func byACL(detail string) loadbalancer.Choice {
	return loadbalancer.Choice{Path: loadbalancer.PathOVN, Reason: reason.ACLByDestination, Detail: detail}
}

func endpoint(a netip.AddrPort) string { return intent.FormatEndpoint(a.Addr(), a.Port()) }
