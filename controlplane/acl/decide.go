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

// compare is less than 0 for a rule of which another one, if it matches, is looked at first.
func (r Rule) compare(o Rule) int {
	return cmp.Or(-cmp.Compare(r.Tier, o.Tier), cmp.Compare(r.Priority, o.Priority))
}

// String names the rule to people. A match may be as long as a page.
func (r Rule) String() string { return fmt.Sprintf("ACL %d %s %.200q", r.Priority, r.Action, r.Match) }

// Verdict is what the ACLs say of a packet: Yes, it is let out.
type Verdict struct {
	Allowed Truth
	// Detail names the ACL that decides, or that leaves it open.
	Detail string
}

// Decide tells whether a packet is let out. Without an ACL that says otherwise it is,
// unless drop is set (NB_Global options:default_acl_drop).
func (b *Book) Decide(rules []Rule, p Packet, sets func(name string) ([]string, bool), drop bool) Verdict {
	last := Verdict{Yes, "no ACL speaks of it"}
	if drop {
		last = Verdict{No, "no ACL allows it, and default_acl_drop is set"}
	}
	q := &question{Packet: p, in: b.reader(sets)}
	first := b.round(rules, false, q, last)
	if !slices.ContainsFunc(rules, func(r Rule) bool { return r.AfterLB }) {
		return first
	}
	if second := b.round(rules, true, q, last); second.Allowed < first.Allowed {
		return second
	}
	return first
}

// round goes through the rules of one of the two rounds from the last to the first: what
// is said so far is what counts if none of those before matches.
func (b *Book) round(rules []Rule, late bool, q *question, last Verdict) Verdict {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.AfterLB != late })
	slices.SortStableFunc(rules, Rule.compare)
	// next is what the next tier says, for what passes.
	so, next := last, last
	for i := 0; i < len(rules); {
		if i > 0 && rules[i].Tier != rules[i-1].Tier {
			next = so
		}
		n := i + 1
		for n < len(rules) && rules[n].compare(rules[i]) == 0 {
			n++
		}
		so = b.level(rules[i:n], q, so, next)
		i = n
	}
	return so
}

// level is what rules of one priority say, of which any may count, with what is said if
// none matches.
func (b *Book) level(rules []Rule, q *question, otherwise, next Verdict) Verdict {
	var answers []Verdict
	certain := false
	for _, r := range rules {
		t := b.match(r.Match).eval(q)
		if t == No {
			continue
		}
		certain = certain || t == Yes
		v := Verdict{Unknown, r.String()}
		switch r.Action {
		case "allow", "allow-related", "allow-stateless":
			v.Allowed = Yes
		case "drop", "reject":
			v.Allowed = No
		case "pass":
			v = next
		}
		if t == Unknown {
			v.Detail += ", if it matches, which is not known"
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
