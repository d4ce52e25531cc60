package ovs

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Cookie and CookieMask say which flows are Sluice's: the upper 48 bits are the
// ASCII of "sluice", the lower 16 say what the flow is for.
const (
	Cookie     uint64 = 0x736c_7569_6365_0000
	CookieMask uint64 = 0xffff_ffff_ffff_0000

	cookieSteering = Cookie | 1
	cookieDefault  = Cookie | 2
)

// Priorities. Neighbour discovery stands between the answers that Sluice gives
// and the steering of sources, which would take it away from a physical router.
const (
	priorityDefault   = 100
	prioritySteer     = 200
	priorityDiscovery = 205
	priorityAsk       = 210
)

// anyVLAN matches tagged and untagged frames.
const anyVLAN = -1

type matchKind uint8

const (
	matchAll matchKind = iota
	// matchARP: requests; prefix is of arp_tpa.
	matchARP
	// matchNS: neighbour solicitations; prefix is of nd_target.
	matchNS
	// matchIP: prefix is of the source and says the family.
	matchIP
	// matchNSFrom and matchNAFrom: solicitations and advertisements; prefix is
	// of the source.
	matchNSFrom
	matchNAFrom
	// matchAnswer: matchIP of a protocol and a source port.
	matchAnswer
)

// flow is one OpenFlow flow of table 0, in the shapes that Sluice writes.
type flow struct {
	match  match
	action action
}

type match struct {
	priority int
	inPort   int
	vlan     int // 0 untagged, or anyVLAN
	src, dst intent.MAC
	kind     matchKind
	prefix   netip.Prefix
	// Of matchAnswer; port 0 is all.
	protocol intent.Protocol
	port     uint16
}

// format writes the flow as ovs-ofctl reads it, without cookie.
func (f flow) format() string { return f.match.format() + ",actions=" + f.action.format() }

func (m match) format() string {
	words := []string{fmt.Sprintf("priority=%d,in_port=%d", m.priority, m.inPort)}
	switch m.vlan {
	case anyVLAN:
	case 0:
		// The tag-present bit and the VID are zero (ovs-fields(7), vlan_tci).
		words = append(words, "vlan_tci=0x0000/0x1fff")
	default:
		words = append(words, fmt.Sprintf("dl_vlan=%d", m.vlan))
	}
	if !m.src.IsZero() {
		words = append(words, "dl_src="+m.src.String())
	}
	if !m.dst.IsZero() {
		words = append(words, "dl_dst="+m.dst.String())
	}
	switch m.kind {
	case matchAll:
	case matchARP:
		words = append(words, "arp,arp_op=1,arp_tpa="+m.prefix.String())
	case matchNS:
		words = append(words, "icmp6,icmp_type=135,icmp_code=0,nd_target="+m.prefix.String())
	case matchNSFrom:
		words = append(words, "icmp6,icmp_type=135,icmp_code=0,ipv6_src="+m.prefix.String())
	case matchNAFrom:
		words = append(words, "icmp6,icmp_type=136,icmp_code=0,ipv6_src="+m.prefix.String())
	case matchIP:
		if m.prefix.Addr().Is4() {
			words = append(words, "ip,nw_src="+m.prefix.String())
		} else {
			words = append(words, "ipv6,ipv6_src="+m.prefix.String())
		}
	case matchAnswer:
		word, field := m.protocol.String(), "nw_src="
		if !m.prefix.Addr().Is4() {
			word, field = word+"6", "ipv6_src="
		}
		words = append(words, word+","+field+m.prefix.String())
		if m.port != 0 {
			words = append(words, fmt.Sprintf("tp_src=%d", m.port))
		}
	}
	return strings.Join(words, ",")
}

// parseFlow reads a line of dump-flows --no-stats --no-names, or what format
// writes. What Sluice would not write is an error.
func parseFlow(line string) (flow, error) {
	text, actions, ok := cutActions(line)
	if !ok {
		return flow{}, fmt.Errorf("flow %q has no actions", line)
	}
	m, err := parseMatch(text)
	if err != nil {
		return flow{}, fmt.Errorf("flow %q: %w", line, err)
	}
	a, err := parseAction(actions)
	if err != nil {
		return flow{}, fmt.Errorf("flow %q: %w", line, err)
	}
	return flow{m, a}, nil
}

// cutActions splits "…[ ,]actions=…".
func cutActions(line string) (matchText, actions string, ok bool) {
	i := strings.Index(line, "actions=")
	if i < 0 {
		return "", "", false
	}
	return strings.Trim(line[:i], " ,"), strings.TrimSpace(line[i+len("actions="):]), true
}

// fields are the parts of a match before they are put together.
type fields struct {
	match
	proto, prefix string
	prefixField   string
	icmpType      int
	arpOp         int
}

func parseMatch(text string) (match, error) {
	// OpenFlow's default priority, which dump-flows leaves out.
	f := fields{match: match{priority: 0x8000, vlan: anyVLAN}}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, _ := strings.Cut(word, "=")
		if err := f.set(name, value); err != nil {
			return match{}, fmt.Errorf("%s: %w", word, err)
		}
	}
	return f.finish()
}

var errUnknownField = errors.New("not a field that Sluice matches")

func (f *fields) set(name, value string) (err error) {
	switch name {
	case "cookie", "idle_timeout", "hard_timeout", "importance", "send_flow_rem", "reset_counts", "no_packet_counts", "no_byte_counts":
		// These say nothing of the match.
	case "table":
		if value != "0" {
			return errUnknownField
		}
	case "priority":
		f.priority, err = number(value, 1<<16-1)
	case "in_port":
		f.inPort, err = number(value, 1<<16-1)
	case "dl_vlan":
		if f.vlan, err = number(value, 1<<16-1); err == nil && f.vlan == 0xffff {
			f.vlan = 0
		} else if f.vlan < 1 || f.vlan > 4094 {
			err = errUnknownField
		}
	case "vlan_tci":
		f.vlan = 0
		if value != "0x0000/0x1fff" && value != "0x0000" && value != "0x0000/0x1000" {
			err = errUnknownField
		}
	case "dl_src":
		f.src, err = intent.ParseMAC(value)
	case "dl_dst":
		f.dst, err = intent.ParseMAC(value)
	case "arp", "ip", "ipv6", "icmp6", "tcp", "tcp6", "udp", "udp6", "sctp", "sctp6":
		if f.proto != "" {
			err = errUnknownField
		}
		f.proto = name
	case "arp_op":
		f.arpOp, err = number(value, 1<<16-1)
	case "icmp_type":
		f.icmpType, err = number(value, 255)
	case "icmp_code":
		if value != "0" {
			err = errUnknownField
		}
	case "tp_src":
		var port int
		port, err = number(value, 1<<16-1)
		f.port = uint16(port)
	case "arp_tpa", "nd_target", "nw_src", "ipv6_src":
		f.prefixField, f.prefix = name, value
	default:
		err = errUnknownField
	}
	return err
}

func number(s string, limit int) (int, error) {
	n, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		return 0, err
	}
	if n > uint64(limit) {
		return 0, fmt.Errorf("above %d", limit)
	}
	return int(n), nil
}

// shapes say which match a protocol and the field of its prefix make. A prefix
// of length 0 is not shown, so the empty field stands for it where it is not
// ambiguous.
var shapes = map[string]matchKind{
	"":                    matchAll,
	"arp/1 arp_tpa":       matchARP,
	"arp/1":               matchARP,
	"icmp6/135 nd_target": matchNS,
	"icmp6/135 ipv6_src":  matchNSFrom,
	"icmp6/136 ipv6_src":  matchNAFrom,
	"icmp6/136":           matchNAFrom,
	"ip nw_src":           matchIP,
	"ip":                  matchIP,
	"ipv6 ipv6_src":       matchIP,
	"ipv6":                matchIP,
	"tcp nw_src":          matchAnswer,
	"tcp6 ipv6_src":       matchAnswer,
	"udp nw_src":          matchAnswer,
	"udp6 ipv6_src":       matchAnswer,
	"sctp nw_src":         matchAnswer,
	"sctp6 ipv6_src":      matchAnswer,
}

func (f *fields) finish() (match, error) {
	shape := f.proto
	switch f.proto {
	case "arp":
		shape += "/" + strconv.Itoa(f.arpOp)
	case "icmp6":
		shape += "/" + strconv.Itoa(f.icmpType)
	}
	if shape == "icmp6/135" && f.prefixField == "" {
		// Only the priority tells which address is any.
		f.prefixField = "nd_target"
		if f.priority == priorityDiscovery {
			f.prefixField = "ipv6_src"
		}
	}
	if f.prefixField != "" {
		shape += " " + f.prefixField
	}
	kind, ok := shapes[shape]
	if !ok {
		return match{}, fmt.Errorf("%q is not a match that Sluice writes", shape)
	}
	f.kind = kind
	switch kind {
	case matchAll:
		return f.match, nil
	case matchAnswer:
		if err := f.match.protocol.UnmarshalText([]byte(strings.TrimSuffix(f.proto, "6"))); err != nil {
			return match{}, err
		}
	}
	v4 := f.proto == "arp" || f.prefixField == "nw_src" || f.proto == "ip"
	p, err := parsePrefix(f.prefix, v4)
	f.match.prefix = p
	return f.match, err
}

func parsePrefix(s string, v4 bool) (netip.Prefix, error) {
	if s == "" {
		if v4 {
			return netip.PrefixFrom(netip.IPv4Unspecified(), 0), nil
		}
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0), nil
	}
	p, err := netip.ParsePrefix(s)
	if a, aerr := netip.ParseAddr(s); aerr == nil {
		p, err = netip.PrefixFrom(a, a.BitLen()), nil
	}
	if err != nil {
		return p, err
	}
	if p.Addr().Is4() != v4 || p.Addr().Is4In6() || p.Addr().Zone() != "" {
		return p, fmt.Errorf("%s is of the wrong family", p)
	}
	return p.Masked(), nil
}
