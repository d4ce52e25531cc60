package evpn

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// PortAddresses is one element of Port_Binding.mac with addresses: "MAC IP IP"
// on a switch's port, "MAC IP/len IP/len" on a router's.
type PortAddresses struct {
	MAC intent.MAC
	// Prefixes keep the address as written, not masked; without a length it is
	// the single address.
	Prefixes []netip.Prefix
}

// ParseMACColumn reads the elements of Port_Binding.mac. "unknown", "router"
// and "dynamic" carry no address and are left out. A bad element does not spoil
// the others: errs has one entry for each.
func ParseMACColumn(column []string) (out []PortAddresses, errs []error) {
	for _, element := range column {
		a, ok, err := parseMACElement(element)
		if err != nil {
			errs = append(errs, err)
		}
		if ok {
			out = append(out, a)
		}
	}
	return out, errs
}

func parseMACElement(element string) (PortAddresses, bool, error) {
	words := strings.Fields(element)
	if len(words) == 0 {
		return PortAddresses{}, false, nil
	}
	switch words[0] {
	case "unknown", "router", "dynamic":
		return PortAddresses{}, false, nil
	}
	mac, err := intent.ParseMAC(words[0])
	if err != nil || mac.IsZero() || mac[0]&1 != 0 {
		return PortAddresses{}, false, fmt.Errorf("mac %q: the first word is no unicast Ethernet address", element)
	}
	a := PortAddresses{MAC: mac}
	for _, w := range words[1:] {
		if w == "dynamic" {
			continue
		}
		p, err := parseAddress(w)
		if err != nil {
			return a, true, fmt.Errorf("mac %q: %w", element, err)
		}
		a.Prefixes = append(a.Prefixes, p)
	}
	return a, true, nil
}

// ParseCIDRs reads the blank-separated list of neutron:cidrs.
func ParseCIDRs(s string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, w := range strings.Fields(s) {
		p, err := parseAddress(w)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

func parseAddress(w string) (netip.Prefix, error) {
	if !strings.Contains(w, "/") {
		a, err := netip.ParseAddr(w)
		if err != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("%q is no IP address", w)
		}
		a = a.Unmap()
		return usable(w, netip.PrefixFrom(a, a.BitLen()))
	}
	p, err := netip.ParsePrefix(w)
	if err != nil || p.Addr().Is4In6() {
		return netip.Prefix{}, fmt.Errorf("%q is no IP address with a prefix length", w)
	}
	return usable(w, p)
}

// usable refuses addresses that no host or router port can have.
func usable(w string, p netip.Prefix) (netip.Prefix, error) {
	a := p.Addr()
	if a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a == netip.AddrFrom4([4]byte{255, 255, 255, 255}) {
		return netip.Prefix{}, fmt.Errorf("%q is no address of a host", w)
	}
	return p, nil
}

// ParseAddresses reads a list of addresses separated by commas or blanks, as in
// external_ids:sluice-next-hops.
func ParseAddresses(s string) ([]netip.Addr, error) {
	var out []netip.Addr
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' }) {
		if strings.Contains(w, "/") {
			return out, fmt.Errorf("%q is no IP address", w)
		}
		p, err := parseAddress(w)
		if err != nil {
			return out, err
		}
		out = append(out, p.Addr())
	}
	return out, nil
}

// ParseStringList reads a list of strings as Python prints it: ['a', 'b'],
// single or double quotes, u” too. It also takes the plain form a,b.
func ParseStringList(s string) ([]string, error) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "[") {
		var out []string
		for w := range strings.SplitSeq(s, ",") {
			if w = strings.TrimSpace(w); w != "" {
				out = append(out, w)
			}
		}
		return out, nil
	}
	if !strings.HasSuffix(s, "]") || len(s) < 2 {
		return nil, fmt.Errorf("list %q has no end", s)
	}
	rest := strings.TrimSpace(s[1 : len(s)-1])
	var out []string
	for rest != "" {
		if strings.HasPrefix(rest, "u'") || strings.HasPrefix(rest, `u"`) {
			rest = rest[1:]
		}
		if rest[0] != '\'' && rest[0] != '"' {
			return nil, fmt.Errorf("list %q: want quoted strings", s)
		}
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return nil, fmt.Errorf("list %q: a string has no end", s)
		}
		out = append(out, rest[1:1+end])
		rest = strings.TrimSpace(rest[2+end:])
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("list %q: want a comma between strings", s)
		}
		rest = strings.TrimSpace(rest[1:])
	}
	return out, nil
}

func parseVNI(s string) (intent.VNI, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	if err != nil || n == 0 || n > uint64(intent.MaxVNI) {
		return 0, fmt.Errorf("VNI %q: want a number 1..%d", s, intent.MaxVNI)
	}
	return intent.VNI(n), nil
}

func parseASN(s string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("AS %q: want a number 1..4294967295", s)
	}
	return uint32(n), nil
}
