package acl

import (
	"cmp"
	"fmt"
	"slices"
)

// Rule is an ACL of direction from-lport that applies to the port.
type Rule struct {
	Priority int
	// Tier is 0 before OVN 23.09.
	Tier   int
	Action string
	Match  string
	// AfterLB: it is of the second of two rounds (options:apply-after-lb). A packet has
	// to be let through both.
	AfterLB bool
}

// Verdict is what the ACLs say of a packet: Yes, it is let out.
type Verdict struct {
	Allowed Truth
	// Detail names the ACL that decides, or that leaves it open.
	Detail string
}

// Book has matches that were read, since the same ones are asked of many ports. The zero
// value is empty. It is used by one goroutine at a time.
type Book struct{ read, used map[string]Expr }

// Turn forgets what was not asked for since the last turn.
func (b *Book) Turn() { b.read, b.used = b.used, nil }

func (b *Book) expr(match string) Expr {
	if e, ok := b.used[match]; ok {
		return e
	}
	e, ok := b.read[match]
	if !ok {
		// What cannot be read is the zero value, which is unknown.
		e, _ = Parse(match)
	}
	if b.used == nil {
		b.used = map[string]Expr{}
	}
	b.used[match] = e
	return e
}

// Decide tells whether a packet is let out. Without an ACL that says otherwise it is,
// unless drop is set (NB_Global options:default_acl_drop).
func (b *Book) Decide(rules []Rule, p Packet, sets func(name string) ([]string, bool), drop bool) Verdict {
	last := Verdict{Yes, "no ACL speaks of it"}
	if drop {
		last = Verdict{No, "no ACL lets it out, and default_acl_drop is set"}
	}
	first := b.round(rules, false, p, sets, last)
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.AfterLB }) {
		return first
	}
	if second := b.round(rules, true, p, sets, last); second.Allowed < first.Allowed {
		return second
	}
	return first
}

// round goes through the rules of one of the two rounds from the last to the first: what
// is said so far is what counts if none of those before matches.
func (b *Book) round(rules []Rule, late bool, p Packet, sets func(string) ([]string, bool), last Verdict) Verdict {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.AfterLB != late })
	slices.SortStableFunc(rules, func(x, y Rule) int { return cmp.Or(-cmp.Compare(x.Tier, y.Tier), cmp.Compare(x.Priority, y.Priority)) })
	// next is what the next tier says, for what passes.
	so, next := last, last
	for i := 0; i < len(rules); {
		if i > 0 && rules[i].Tier != rules[i-1].Tier {
			next = so
		}
		n := i + 1
		for n < len(rules) && rules[n].Tier == rules[i].Tier && rules[n].Priority == rules[i].Priority {
			n++
		}
		so = b.level(rules[i:n], p, sets, so, next)
		i = n
	}
	return so
}

// level is what rules of one priority say, of which any may count, with what is said if
// none matches.
func (b *Book) level(rules []Rule, p Packet, sets func(string) ([]string, bool), otherwise, next Verdict) Verdict {
	var answers []Verdict
	certain := false
	for _, r := range rules {
		t := b.expr(r.Match).Eval(p, sets)
		if t == No {
			continue
		}
		certain = certain || t == Yes
		v := Verdict{Unknown, fmt.Sprintf("ACL %d %s %q", r.Priority, r.Action, r.Match)}
		switch r.Action {
		case "allow", "allow-related", "allow-stateless":
			v.Allowed = Yes
		case "drop", "reject":
			v.Allowed = No
		case "pass":
			v = next
		}
		if t == Unknown {
			v.Detail += ", if that matches: which is not known"
		}
		answers = append(answers, v)
	}
	if !certain {
		// First, since it is what counts when all agree.
		answers = slices.Insert(answers, 0, otherwise)
	}
	out := answers[0]
	for _, v := range answers[1:] {
		if v.Allowed != out.Allowed {
			return Verdict{Unknown, v.Detail + "; else " + out.Detail}
		}
	}
	return out
}

// ByDestination tells whether what rules of the first round say of packets may depend on where
// these go: then it may say another thing when the destination is replaced. The packets have
// AnyDst. What cannot be read may.
func (b *Book) ByDestination(rules []Rule, packets []Packet, sets func(name string) ([]string, bool)) bool {
	return slices.ContainsFunc(rules, func(r Rule) bool {
		e := b.expr(r.Match)
		return !r.AfterLB && !bySource(e.root) && slices.ContainsFunc(packets, func(p Packet) bool { return e.Eval(p, sets) == Unknown })
	})
}

// bySource tells whether a match looks at nothing but where a packet is from, and at its protocol.
func bySource(n node) bool {
	other := func(part node) bool { return !bySource(part) }
	switch n := n.(type) {
	case all:
		return !slices.ContainsFunc(n, other)
	case some:
		return !slices.ContainsFunc(n, other)
	case opposite:
		return bySource(n.of)
	case fixed:
		return true
	case predicate:
		return (&question{}).protocol(n.field) != Unknown
	case compare:
		return slices.Contains([]string{"inport", "eth.src", "eth.type", "ip4.src", "ip6.src", "ip.proto", "tcp.src", "udp.src", "sctp.src"}, n.field)
	}
	return false
}
