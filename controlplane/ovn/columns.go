package ovn

import (
	"fmt"
	"net/netip"
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
		p, err := ParseCIDR(w)
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
		p, err := ParseCIDR(w)
		if err != nil {
			return out, err
		}
		out = append(out, p)
	}
	return out, nil
}

// ParseCIDR reads an address of a host or a router port, with a prefix length or without:
// "10.0.0.7/24" or "10.0.0.7", which is 10.0.0.7/32. The address stays as written, not masked.
func ParseCIDR(w string) (netip.Prefix, error) {
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
		p, err := ParseCIDR(w)
		if err != nil {
			return out, err
		}
		out = append(out, p.Addr())
	}
	return out, nil
}
