package acl

import "slices"

// joint is what a match may say of two packets that differ in where they go and in nothing
// else: a set of the four that follow. What is not known of both is the same of both.
type joint uint8

// The members of the set. Their places are two bits: whether the first matches, and whether
// the second does.
const (
	neither joint = 1 << iota
	onlySecond
	onlyFirst
	both

	alike    = neither | both
	differ   = onlyFirst | onlySecond
	anything = alike | differ
)

// ands and ors are the joints of two matches of which nothing is known but what each may say.
var (
	ands = combined(func(a, b int) int { return a & b })
	ors  = combined(func(a, b int) int { return a | b })
)

func combined(of func(a, b int) int) (out [anything + 1][anything + 1]joint) {
	for x := range out {
		for y := range out[x] {
			for a := range 4 {
				for b := range 4 {
					if x>>a&1 == 1 && y>>b&1 == 1 {
						out[x][y] |= 1 << of(a, b)
					}
				}
			}
		}
	}
	return out
}

// pair is two packets of a joint: they have one family, protocol and sender.
type pair struct{ first, second question }

// shared tells whether a field is the same of both packets, known or not. Bits of fields, and
// functions, have names of their own and are none. The state of a connection is the same
// whether OVN translates it or who sent it did; what else conntrack says is not.
func shared(field string) bool {
	switch field {
	case "inport", "eth.src", "eth.type", "ip4.src", "ip6.src", "ip.proto", "tcp.src", "udp.src", "sctp.src",
		"ct.new", "ct.est", "ct.rel", "ct.rpl", "ct.inv", "ct.trk":
		return true
	}
	return false
}

// of is the joint of what is known of each packet. same: what is not known is.
func (p *pair) of(first, second Truth, same bool) joint {
	if same && first == Unknown && second == Unknown {
		return alike
	}
	may := func(t Truth, yes int) bool { return t == Unknown || t == truth(yes == 1) }
	var out joint
	for place := range 4 {
		if may(first, place>>1) && may(second, place&1) {
			out |= 1 << place
		}
	}
	return out
}

func (n all) joint(p *pair, not bool) joint  { return fold(n, p, not, not) }
func (n some) joint(p *pair, not bool) joint { return fold(n, p, not, !not) }

// fold joins parts, or their opposites, by "or" or by "and".
func fold(parts []node, p *pair, not, or bool) joint {
	table, out, decided := &ands, both, neither
	if or {
		table, out, decided = &ors, neither, both
	}
	for _, part := range parts {
		if out = table[out][part.joint(p, not)]; out == decided {
			break
		}
	}
	return out
}

func (n opposite) joint(p *pair, not bool) joint { return n.of.joint(p, !not) }

func (n fixed) joint(p *pair, not bool) joint {
	return p.of(n.eval(&p.first, not), n.eval(&p.second, not), true)
}

func (n predicate) joint(p *pair, not bool) joint {
	return p.of(n.eval(&p.first, not), n.eval(&p.second, not), shared(n.field))
}

func (n compare) joint(p *pair, not bool) joint {
	return p.of(n.eval(&p.first, not), n.eval(&p.second, not), shared(n.field) || p.first.anyPort && isPort(n.field))
}

// isPort tells whether a field is the port that packets go to.
func isPort(field string) bool {
	return field == "tcp.dst" || field == "udp.dst" || field == "sctp.dst"
}

// bySource tells whether a match looks at nothing but what two packets to different
// destinations have in common.
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
		return shared(n.field) || (&question{}).protocol(n.field) != Unknown
	case compare:
		return shared(n.field)
	}
	return false
}

// namesPort tells whether a match names a port, so that it is another one for each.
func namesPort(n node) bool {
	switch n := n.(type) {
	case all:
		return slices.ContainsFunc(n, namesPort)
	case some:
		return slices.ContainsFunc(n, namesPort)
	case opposite:
		return namesPort(n.of)
	case compare:
		return n.field == "inport" && slices.ContainsFunc(n.with, func(v value) bool { return v.kind == isText })
	}
	return false
}
