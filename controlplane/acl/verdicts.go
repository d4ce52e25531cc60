package acl

// answer is what a rule says of a packet that it matches.
type answer uint8

const (
	allowed answer = iota
	dropped
	rejected
	strange // an action that is not known; of two packets it may be the same
	passed  // to the next tier; no verdict
	answers
)

func (r Rule) answer() answer {
	switch r.Action {
	case "allow", "allow-related", "allow-stateless":
		// On a switch with VIPs OVN has conntrack see what "allow" lets out, too.
		return allowed
	case "drop":
		return dropped
	case "reject":
		return rejected
	case "pass":
		return passed
	}
	return strange
}

// verdicts is what may be said of two packets: a set of pairs of answers.
type verdicts uint16

func said(first, second answer) verdicts { return 1 << (first*passed + second) }

// equally is the same answer to both.
func equally(a answer) verdicts { return said(a, a) }

// equal tells whether the two are certainly given the same answer.
func (v verdicts) equal() bool {
	for a := range passed {
		v &^= equally(a)
	}
	return v == 0
}

// firsts and seconds are the answers that one of the two may get, as a set.
func (v verdicts) firsts() (out uint8) {
	for a := range passed {
		for b := range passed {
			if v&said(a, b) != 0 {
				out |= 1 << a
			}
		}
	}
	return out
}

func (v verdicts) seconds() (out uint8) {
	for a := range passed {
		for b := range passed {
			if v&said(a, b) != 0 {
				out |= 1 << b
			}
		}
	}
	return out
}

// level is the rules of one priority, of which any may count: what those of each answer match.
type level struct {
	joints [answers]joint
	// asks: a rule looks at destinations. If none does, the same one counts for both packets.
	asks bool
	// so is what is said if none matches, next what the next tier says.
	so, next verdicts
}

func newLevel(rules []ranked, so, next verdicts) *level {
	l := &level{so: so, next: next}
	for a := range l.joints {
		l.joints[a] = neither
	}
	for _, r := range rules {
		a := r.answer()
		l.joints[a] = ors[l.joints[a]][r.joint]
		l.asks = l.asks || r.asks
	}
	return l
}

func (l *level) verdicts() verdicts { return l.from(0, 0, 0) }

// from goes through what the rules with an answer, and with those after it, may match; first
// and second are the answers so far that either packet may get.
func (l *level) from(a answer, first, second uint8) (out verdicts) {
	if a == answers {
		return l.choices(first, second)
	}
	for place := range 4 {
		if l.joints[a]>>place&1 == 1 {
			out |= l.from(a+1, first|uint8(place>>1)<<a, second|uint8(place&1)<<a)
		}
	}
	return out
}

// choices are the verdicts when the packets match rules with these answers.
func (l *level) choices(first, second uint8) (out verdicts) {
	switch {
	case first == 0 && second == 0:
		return l.so
	case first == second && (!l.asks || first&(first-1) == 0):
		for a := range answers {
			switch {
			case first>>a&1 == 0:
			case a == passed:
				out |= l.next
			default:
				out |= equally(a)
			}
		}
		return out
	}
	firsts, seconds := l.alternatives(first, verdicts.firsts), l.alternatives(second, verdicts.seconds)
	for a := range passed {
		for b := range passed {
			if firsts>>a&1 == 1 && seconds>>b&1 == 1 {
				out |= said(a, b)
			}
		}
	}
	return out
}

// alternatives are the verdicts on one packet that matches rules with these answers.
func (l *level) alternatives(matched uint8, of func(verdicts) uint8) uint8 {
	if matched == 0 {
		return of(l.so)
	}
	out := matched &^ (1 << passed)
	if matched>>passed&1 == 1 {
		out |= of(l.next)
	}
	return out
}
