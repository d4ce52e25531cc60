package acl

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// Redirect is packets of a protocol that go to another address and port than their sender
// wrote, of the same family. The ports are 0 where any port is meant, which stays.
type Redirect struct {
	Protocol uint8
	From, To netip.AddrPort
}

// Judge tells whether the ACLs of a port say the same of packets and of what they are
// redirected to: whether they may look at them after that in place of before.
type Judge struct {
	rules []ranked // by Rule.compare
	// pair is what a redirect's packets are before and after it.
	pair  pair
	drop  bool
	kinds map[kind]docket
	// Work counts the matches that were looked at.
	Work int
}

// kind is what redirects have in common for which rules are chosen once.
type kind struct {
	protocol   uint8
	six, ports bool
}

// docket is the rules that matter for a kind of redirects; those of the second round alone are
// in late. blind: they say the same of all.
type docket struct {
	first, late []ranked
	blind       bool
}

// ranked is a rule in its place, and what it may say.
type ranked struct {
	Rule
	match reading
	joint joint
	// asks: the joint depends on the destinations.
	asks bool
}

// Judge has the rules of a port, with what sets and drop are for Decide. Of the second round
// those alone count that say which packets conntrack sees: they look at them before load
// balancing, as the first round does.
func (b *Book) Judge(rules []Rule, port string, groups map[string]bool, sets func(name string) ([]string, bool), drop bool) *Judge {
	q := question{Packet: Packet{Port: port, Groups: groups}, in: b.reader(sets)}
	j := &Judge{pair: pair{q, q}, drop: drop, kinds: map[kind]docket{}}
	for _, r := range rules {
		if !r.AfterLB || r.stateless() {
			j.rules = append(j.rules, ranked{Rule: r, match: b.match(r.Match)})
		}
	}
	slices.SortStableFunc(j.rules, func(x, y ranked) int { return x.compare(y.Rule) })
	return j
}

// Identity is the same text of two ports of which rules say the same, for the same sets and
// drop. It is empty if they say the same of packets to all destinations.
func (b *Book) Identity(rules []Rule, port string, groups map[string]bool) string {
	blind, named := true, false
	for _, r := range rules {
		m := b.match(r.Match)
		blind = blind && (m.bySource || r.AfterLB && !r.stateless())
		named = named || m.namesPort
	}
	if blind {
		return ""
	}
	var out strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&out, "%d %d %t %q %q\n", r.Tier, r.Priority, r.AfterLB, r.Action, r.Match)
	}
	fmt.Fprintf(&out, "%q\n", slices.Sorted(maps.Keys(groups)))
	if named {
		out.WriteString(port)
	}
	return out.String()
}

func (r Rule) stateless() bool { return r.Action == "allow-stateless" }

// Differs tells whether the rules may say of a redirect's packets something else than of what
// these become, and names the first rule that may.
func (j *Judge) Differs(r Redirect) (Rule, bool) {
	d := j.docket(r)
	if d.blind {
		return Rule{}, false
	}
	j.load(r, false)
	one, unseen := j.ask(d.first)
	late, alsoUnseen := j.ask(d.late)
	// Packets that are let out without conntrack are none that OVN balances, and are not met
	// by rules that ask it: which rule counts for them is another question.
	switch unseen = unseen || alsoUnseen; {
	case one == nil && late == nil:
	case one == nil:
		return late.Rule, true
	case unseen || !j.verdicts(d.first).equal():
		return one.Rule, true
	}
	return Rule{}, false
}

// ask finds what rules say of the pair, and the first one that may not say the same of both.
// unseen: what one of the two is let out by, if it is, keeps it from conntrack.
func (j *Judge) ask(rules []ranked) (first *ranked, unseen bool) {
	for i := range rules {
		r := &rules[i]
		if r.asks {
			r.joint = r.match.joint(&j.pair)
			j.Work++
		}
		unseen = unseen || r.stateless() && r.joint != neither
		if r.joint&differ != 0 {
			first = r // the last one is looked at first
		}
	}
	return first, unseen
}

// docket chooses the rules that matter for redirects of a kind.
func (j *Judge) docket(r Redirect) docket {
	k := kind{r.Protocol, r.From.Addr().Is6(), r.From.Port() != 0}
	d, done := j.kinds[k]
	if done {
		return d
	}
	j.load(r, true)
	d.blind = true
	for _, one := range j.rules {
		one.joint = one.match.joint(&j.pair)
		one.asks = one.joint&differ != 0
		d.blind = d.blind && !one.asks
		switch {
		case one.joint == neither:
		case one.AfterLB:
			d.late = append(d.late, one)
		default:
			d.first = append(d.first, one)
		}
	}
	j.kinds[k] = d
	return d
}

// load makes the pair of a redirect; any: of any one of its kind.
func (j *Judge) load(r Redirect, any bool) {
	j.pair.first.load(r.Protocol, r.From, any)
	j.pair.second.load(r.Protocol, r.To, any)
}

func (q *question) load(protocol uint8, to netip.AddrPort, any bool) {
	q.Protocol, q.Dst, q.DstPort, q.AnyDst, q.anyPort = protocol, to.Addr(), to.Port(), any, to.Port() == 0
}

// verdicts goes through the rules of the first round from the last to the first, as round does.
func (j *Judge) verdicts(rules []ranked) verdicts {
	so := equally(allowed)
	if j.drop {
		so = equally(dropped)
	}
	next, tier := so, 0
	for i := 0; i < len(rules); {
		if i > 0 && rules[i].Tier != tier {
			next = so
		}
		tier = rules[i].Tier
		n := i + 1
		for n < len(rules) && rules[n].compare(rules[i].Rule) == 0 {
			n++
		}
		so = newLevel(rules[i:n], so, next).verdicts()
		i = n
	}
	return so
}
