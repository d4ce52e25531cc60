package octavia

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// natFloating is the NAT.type of a floating IP.
const natFloating = "dnat_and_snat"

// Which NAT rows there are is not guarded: the server would read all of them for each call, and one
// that comes meanwhile is an event.
var (
	natOfPort = northbound.Declare("logical_port", func(r *nb.NAT) []string {
		if r.LogicalPort == nil {
			return nil
		}
		return []string{*r.LogicalPort}
	}, nil)

	natOfAddress = northbound.Declare("logical_ip", func(r *nb.NAT) []string { return []string{r.LogicalIP} }, nil)

	routerOfNAT = northbound.Declare("nat", func(r *nb.LogicalRouter) []string { return r.Nat },
		func(uuid string) ovsdb.Clause { return ovsdb.Includes("nat", ovsdb.UUID(uuid)) })
)

// floatingIP finds the floating IP of a VIP: the external address of a NAT row that names the VIP's
// port, as Neutron's rows do, or of one that names the VIP's address, and no port, on a router
// that serves the load balancer. It is invalid for none. Of several the VIP keeps the one that it has.
func floatingIP(r northbound.Reader, v rowform.VIP, routers map[string]string) (found netip.Addr) {
	rows := northbound.Find(r, natOfPort, v.Port, "type", "logical_ip", "external_ip", "external_port_range")
	for _, row := range northbound.Find(r, natOfAddress, v.Address.String(), "type", "logical_ip", "logical_port", "external_ip", "external_port_range") {
		if row.LogicalPort == nil && slices.ContainsFunc(northbound.Find(r, routerOfNAT, row.UUID, "name"), func(lr *nb.LogicalRouter) bool {
			_, serves := routers[lr.Name]
			return serves
		}) {
			rows = append(rows, row)
		}
	}
	for _, row := range rows {
		external, err := netip.ParseAddr(row.ExternalIP)
		if err != nil || row.Type != natFloating || row.LogicalIP != v.Address.String() || row.ExternalPortRange != "" {
			continue
		}
		if external == v.FloatingIP {
			return external
		}
		if !found.IsValid() || external.Less(found) {
			found = external
		}
	}
	return found
}

// floating are the VIPs of a row with the floating IPs that they have now.
func floating(from northbound.Reader, r *rowform.Row, routers map[string]string) (vip rowform.VIP, additional []rowform.VIP) {
	vip, additional = r.VIP, slices.Clone(r.Additional)
	vip.FloatingIP = floatingIP(from, vip, routers)
	for i := range additional {
		additional[i].FloatingIP = floatingIP(from, additional[i], routers)
	}
	return vip, additional
}
