package loadbalancer

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// parseAddress reads a VIP or a backend as ovn-nb(5) has them: ADDRESS:PORT, with IPv6
// addresses in brackets, or ADDRESS. The port is 0 where there is none.
func parseAddress(text string) (netip.AddrPort, error) {
	host, port, err := split(text)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: %w", text, err)
	}
	a, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		err = errors.New("no IP address")
	case a.Zone() != "":
		err = errors.New("the address has a zone")
	case a.Is4In6():
		err = errors.New("an IPv4-mapped IPv6 address")
	case a.IsUnspecified(), a.IsMulticast():
		err = errors.New("not the address of one host")
	case a.Is4() && strings.HasPrefix(text, "["):
		err = errors.New("an IPv4 address in brackets")
	}
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q: %w", text, err)
	}
	return netip.AddrPortFrom(a, port), nil
}

// split parts an address and its port.
func split(text string) (host string, port uint16, err error) {
	host, rest, bracketed := text, "", false
	if inside, ok := strings.CutPrefix(text, "["); ok {
		if host, rest, bracketed = strings.Cut(inside, "]"); !bracketed {
			return "", 0, errors.New("a bracket is open")
		}
	} else if strings.Count(text, ":") == 1 {
		host, rest, _ = strings.Cut(text, ":")
		rest = ":" + rest
	}
	if rest == "" {
		return host, 0, nil
	}
	digits, ok := strings.CutPrefix(rest, ":")
	n, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || n == 0 || digits != strconv.FormatUint(n, 10) {
		return "", 0, errors.New("the port is no number from 1 to 65535")
	}
	return host, uint16(n), nil
}

// parseBackends reads the backends of a VIP. One that is there twice counts once, where OVN
// gives it two shares: weights are for that. As in OVN nothing between two commas is nothing.
func parseBackends(list string, vip netip.AddrPort) ([]netip.AddrPort, error) {
	var out []netip.AddrPort
	seen := map[netip.AddrPort]bool{}
	for word := range strings.SplitSeq(list, ",") {
		if word == "" {
			continue
		}
		b, err := parseAddress(strings.TrimSpace(word))
		switch {
		case err != nil:
			return nil, fmt.Errorf("backend %w", err)
		case b.Addr().Is4() != vip.Addr().Is4():
			return nil, fmt.Errorf("backend %q is of another family than the VIP", word)
		case (b.Port() == 0) != (vip.Port() == 0):
			return nil, fmt.Errorf("backend %q: give a port if the VIP has one, and only then", word)
		case !seen[b]:
			seen[b] = true
			out = append(out, b)
		}
	}
	return out, nil
}
