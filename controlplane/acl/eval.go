package acl

import (
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Truth is an answer of three.
type Truth int8

// The answers. The order is that of "at most".
const (
	No Truth = iota - 1
	Unknown
	Yes
)

func truth(b bool) Truth {
	if b {
		return Yes
	}
	return No
}

// negated is the opposite where that is asked for.
func (t Truth) negated(not bool) Truth {
	if not {
		return -t
	}
	return t
}

// Packet is the first one of a connection, as it leaves a port.
type Packet struct {
	// Port is the Logical_Switch_Port, and Groups are all port groups that it is in.
	Port   string
	Groups map[string]bool
	// MAC is the sender's, zero if it is not known.
	MAC intent.MAC
	// Src is invalid if it is not known, such as a link-local address of IPv6. Dst says
	// of which family the packet is.
	Src, Dst netip.Addr
	// Protocol is 6, 17 or 132, and DstPort the port of it.
	Protocol uint8
	DstPort  uint16
	// AnyDst: of Dst the family is known alone, and DstPort is not.
	AnyDst bool
}

// question is a packet and what else is known.
type question struct {
	Packet
	// in tells whether an address set has an address.
	in func(a netip.Addr, set string) Truth
	// anyPort: DstPort is not known.
	anyPort bool
}

// Eval tells whether a packet matches. sets are the address sets that are known.
func (e Expr) Eval(p Packet, sets func(name string) ([]string, bool)) Truth {
	return e.eval(&question{Packet: p, in: (&Book{}).reader(sets)})
}

func (e Expr) eval(q *question) Truth {
	if e.root == nil {
		return Unknown
	}
	return e.root.eval(q, false)
}

// joint is what the match may say of two packets.
func (e Expr) joint(p *pair) joint {
	if e.root == nil {
		return anything
	}
	return e.root.joint(p, false)
}

func (n all) eval(q *question, not bool) Truth {
	if not {
		return join(n, q, true, Yes)
	}
	return join(n, q, false, No)
}

func (n some) eval(q *question, not bool) Truth {
	if not {
		return join(n, q, true, No)
	}
	return join(n, q, false, Yes)
}

// join goes through parts until one of them has the answer that decides.
func join(parts []node, q *question, not bool, decides Truth) Truth {
	out := -decides
	for _, part := range parts {
		switch t := part.eval(q, not); t {
		case decides:
			return decides
		case Unknown:
			out = Unknown
		}
	}
	return out
}

func (n opposite) eval(q *question, not bool) Truth { return n.of.eval(q, !not) }

func (n fixed) eval(_ *question, not bool) Truth { return Truth(n).negated(not) }

// eval of a field alone is that of a protocol, or unknown.
func (n predicate) eval(q *question, not bool) Truth {
	return q.protocol(n.field).negated(not)
}

// protocol tells whether the packet is of a protocol.
func (q *question) protocol(field string) Truth {
	switch field {
	case "ip":
		return Yes
	case "ip4":
		return truth(q.Dst.Is4())
	case "ip6":
		return truth(q.Dst.Is6())
	case "tcp":
		return truth(q.Protocol == 6)
	case "udp":
		return truth(q.Protocol == 17)
	case "sctp":
		return truth(q.Protocol == 132)
	case "icmp", "icmp4", "icmp6", "igmp", "arp", "rarp", "nd", "nd_ns", "nd_na", "nd_rs", "nd_ra",
		"eth.mcast", "eth.bcast", "eth.mcastv6", "ip4.mcast", "ip6.mcast", "mldv1", "mldv2":
		return No
	}
	return Unknown
}

// eval of a comparison. As in OVN, a field of a protocol makes packets of others not
// match, whether the comparison is turned round or not.
func (n compare) eval(q *question, not bool) Truth {
	if protocol, _, dotted := strings.Cut(n.field, "."); dotted && q.protocol(protocol) == No {
		return No
	}
	switch {
	case n.op == "==" || n.op == "!=":
		return q.among(n.field, n.with).negated(not != (n.op == "!="))
	case len(n.with) == 1:
		return q.holds(n.field, n.op, n.with[0]).negated(not)
	}
	return Unknown // OVN takes sets with == and != alone
}

// among tells whether a field equals one of several constants.
func (q *question) among(field string, with []value) Truth {
	out := No
	for _, v := range with {
		out = max(out, q.holds(field, "==", v))
	}
	return out
}

func (q *question) holds(field, op string, v value) Truth {
	switch field {
	case "inport":
		switch {
		case op != "==":
		case v.kind == isText:
			return truth(v.text == q.Port)
		case v.kind == isGroup:
			return truth(q.Groups[v.text])
		}
		return Unknown
	case "eth.src":
		if op == "==" && v.kind == isMAC && !q.MAC.IsZero() {
			return truth(v.mac == q.MAC)
		}
		return Unknown
	case "ip4.src", "ip6.src":
		return q.address(q.Src, op, v)
	case "ip4.dst", "ip6.dst":
		if q.AnyDst {
			return Unknown
		}
		return q.address(q.Dst, op, v)
	case "ip.proto":
		return number(uint64(q.Protocol), op, v)
	case "tcp.dst", "udp.dst", "sctp.dst": // of another protocol it was said before
		if q.AnyDst || q.anyPort {
			return Unknown
		}
		return number(uint64(q.DstPort), op, v)
	case "eth.type":
		kind := uint64(0x800)
		if q.Dst.Is6() {
			kind = 0x86dd
		}
		return number(kind, op, v)
	}
	return Unknown
}

func number(have uint64, op string, v value) Truth {
	if v.kind != isNumber {
		return Unknown
	}
	switch op {
	case "==":
		return truth(have == v.number)
	case "<":
		return truth(have < v.number)
	case "<=":
		return truth(have <= v.number)
	case ">":
		return truth(have > v.number)
	case ">=":
		return truth(have >= v.number)
	}
	return Unknown
}

func (q *question) address(a netip.Addr, op string, v value) Truth {
	switch {
	case op != "==" || !a.IsValid():
		return Unknown
	case v.kind == isPrefix && v.prefix.Addr().BitLen() == a.BitLen():
		return truth(v.prefix.Contains(a))
	case v.kind == isSet:
		return q.in(a, v.text)
	}
	return Unknown
}
