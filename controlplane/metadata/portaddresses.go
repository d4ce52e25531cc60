package metadata

import (
	"errors"
	"net/netip"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// portAddresses reads who may ask from the column mac, and from neutron:cidrs where it has no
// address: a port without port security may have a MAC alone. What can be read counts,
// whatever else is wrong.
func portAddresses(column []string, cidrs string) ([]intent.PortAddress, error) {
	list, errs := ovn.ParseMACColumn(column)
	var out []intent.PortAddress
	named := false
	for _, e := range list {
		if len(e.Prefixes) == 0 {
			out = append(out, intent.PortAddress{MAC: e.MAC})
		}
		for _, p := range e.Prefixes {
			named = true
			out = append(out, intent.PortAddress{MAC: e.MAC, Addr: p.Addr()})
		}
	}
	if len(list) == 0 || named {
		return out, errors.Join(errs...)
	}
	prefixes, err := ovn.ParseCIDRs(cidrs)
	if err != nil {
		errs = append(errs, err)
	}
	for _, p := range prefixes {
		if p.Addr().Zone() == "" {
			out = append(out, intent.PortAddress{MAC: list[0].MAC, Addr: p.Addr().Unmap()})
		}
	}
	return out, errors.Join(errs...)
}

// ipsOf are the IP addresses of a list.
func ipsOf(list []intent.PortAddress) (out []netip.Addr) {
	for _, g := range list {
		if g.Addr.IsValid() {
			out = append(out, g.Addr)
		}
	}
	return out
}
