package ovs

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Overridden lists foreign flows that come before Sluice's for some of the same
// packets, whatever they do with them: BRIDGE and the flow as ovs-ofctl shows it.
// It reads table 0 of every bridge with a port of ours once.
func (s *Switch) Overridden(ctx context.Context) ([]string, error) {
	var out []string
	for _, bridge := range s.used() {
		text, err := s.ofctl(ctx, "", bridge, []string{"-O", openFlow, "--no-stats", "--no-names", "dump-flows"}, "table=0")
		if err != nil {
			return nil, fmt.Errorf("looking for flows of others: %w", err)
		}
		for _, line := range overriding(text) {
			out = append(out, bridge+": "+line)
		}
	}
	return out, nil
}

// FlowsChanged tells that what Overridden returned may no longer be so, as Changes.
func (s *Switch) FlowsChanged() <-chan struct{} { return s.moved }

// overriding finds the lines of a dump. Ours are read only where a foreign flow
// may come before one of them: on most bridges there is none.
func overriding(dump []byte) []string {
	var foreign []foreignFlow
	eachLine(dump, func(line string, ours bool) {
		if f := readForeign(line); !ours && f.priority > priorityDefault {
			foreign = append(foreign, f)
		}
	})
	if len(foreign) == 0 {
		return nil
	}
	var out []string
	eachLine(dump, func(line string, ours bool) {
		if !ours {
			return
		}
		f, err := parseFlow(line)
		if err != nil {
			return // what nobody wants there is removed
		}
		foreign = slices.DeleteFunc(foreign, func(o foreignFlow) bool {
			if !o.before(f.match) {
				return false
			}
			out = append(out, o.line)
			return true
		})
	})
	slices.Sort(out)
	return out
}

func eachLine(dump []byte, visit func(line string, ours bool)) {
	lines := bufio.NewScanner(bytes.NewReader(dump))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if text, _, ok := cutActions(line); ok {
			visit(line, cookieOf(text)&CookieMask == Cookie)
		}
	}
}

// foreignFlow is a flow of another, with all that it matches.
type foreignFlow struct {
	line     string
	priority int
	fields   map[string]string // a protocol has the empty value
}

func readForeign(line string) foreignFlow {
	f := foreignFlow{line: line, priority: 0x8000, fields: map[string]string{}}
	text, _, _ := cutActions(line)
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		name, value, _ := strings.Cut(word, "=")
		f.fields[name] = value
	}
	if n, err := strconv.Atoi(f.fields["priority"]); err == nil {
		f.priority = n
	}
	return f
}

// before tells whether the flow has a higher priority than ours and a packet can
// match both. A field that is not looked at is taken to allow one.
func (f foreignFlow) before(m match) bool {
	return f.priority > m.priority && f.samePort(m) && f.sameVLAN(m.vlan) &&
		sameMAC(f.fields["dl_src"], m.src) && sameMAC(f.fields["dl_dst"], m.dst) && f.sameProtocol(m) && f.samePrefix(m)
}

func (f foreignFlow) samePort(m match) bool {
	port, ok := f.fields["in_port"]
	return !ok || port == strconv.Itoa(m.inPort)
}

// sameVLAN compares the tag-present bit and the VID (ovs-fields(7), vlan_tci).
func (f foreignFlow) sameVLAN(vlan int) bool {
	if vlan == anyVLAN {
		return true
	}
	tci := uint64(vlan)
	if vlan != 0 {
		tci |= 0x1000
	}
	if v, ok := f.fields["dl_vlan"]; ok {
		n, err := strconv.ParseUint(v, 0, 16)
		return err != nil || n == uint64(vlan) || n == 0xffff && vlan == 0
	}
	v, ok := f.fields["vlan_tci"]
	if !ok {
		return true
	}
	value, mask, masked := strings.Cut(v, "/")
	want, err1 := strconv.ParseUint(value, 0, 16)
	bits := uint64(0xffff)
	var err2 error
	if masked {
		bits, err2 = strconv.ParseUint(mask, 0, 16)
	}
	return err1 != nil || err2 != nil || (tci^want)&bits&0x1fff == 0
}

func sameMAC(text string, ours intent.MAC) bool {
	if text == "" || ours.IsZero() {
		return true
	}
	value, mask, masked := strings.Cut(text, "/")
	v, err1 := intent.ParseMAC(value)
	bits := intent.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	var err2 error
	if masked {
		bits, err2 = intent.ParseMAC(mask)
	}
	if err1 != nil || err2 != nil {
		return true
	}
	for i := range v {
		if (v[i]^ours[i])&bits[i] != 0 {
			return false
		}
	}
	return true
}

// protocols are the names that a match may have: the EtherType, and the protocol
// above IP, where there is one.
var protocols = map[string][2]string{
	"arp": {"arp"}, "rarp": {"rarp"}, "ip": {"ip"}, "ipv6": {"ipv6"}, "mpls": {"mpls"}, "mplsm": {"mpls"},
	"icmp": {"ip", "icmp"}, "tcp": {"ip", "tcp"}, "udp": {"ip", "udp"}, "sctp": {"ip", "sctp"},
	"icmp6": {"ipv6", "icmp6"}, "tcp6": {"ipv6", "tcp"}, "udp6": {"ipv6", "udp"}, "sctp6": {"ipv6", "sctp"},
}

func (f foreignFlow) sameProtocol(m match) bool {
	ours := map[matchKind][2]string{
		matchARP: {"arp"}, matchNS: {"ipv6", "icmp6"}, matchNSFrom: {"ipv6", "icmp6"}, matchNAFrom: {"ipv6", "icmp6"},
		matchIP: {map[bool]string{true: "ip", false: "ipv6"}[m.prefix.Addr().Is4()]},
	}[m.kind]
	for name := range f.fields {
		theirs, ok := protocols[name]
		if ok && (differ(theirs[0], ours[0]) || differ(theirs[1], ours[1])) {
			return false
		}
	}
	_, other := f.fields["dl_type"] // an EtherType that has no name above
	return !other || m.kind == matchAll
}

func differ(a, b string) bool { return a != "" && b != "" && a != b }

func (f foreignFlow) samePrefix(m match) bool {
	var names []string
	switch m.kind {
	case matchARP:
		if differ(f.fields["arp_op"], "1") {
			return false
		}
		names = []string{"arp_tpa"}
	case matchNS, matchNSFrom, matchNAFrom:
		kind := map[bool]string{true: "136", false: "135"}[m.kind == matchNAFrom]
		if differ(f.fields["icmp_type"], kind) {
			return false
		}
		names = []string{"ipv6_src"}
		if m.kind == matchNS {
			names = []string{"nd_target"}
		}
	case matchIP:
		names = []string{"nw_src", "ipv6_src"}
	}
	for _, name := range names {
		p, err := parsePrefix(f.fields[name], m.prefix.Addr().Is4())
		if f.fields[name] != "" && err == nil && !p.Overlaps(m.prefix) {
			return false
		}
	}
	return true
}
