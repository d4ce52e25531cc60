package api

import (
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
)

// placeVIP finds the VIP's subnet, and its address and port, which it makes if need be.
func (a *API) placeVIP(tx *northbound.Tx, q *request, in balancerRequest) (network.Subnet, rowform.VIP, error) {
	if in.VIPPort != "" {
		return a.vipOfPort(tx, q, in)
	}
	var none rowform.VIP
	s, err := a.vipSubnet(tx, q, in)
	if err != nil {
		return s, none, err
	}
	vip, err := place(tx, q, in.Project, s, in.VIPAddress, q.port, octavia.PortName(q.id))
	return s, vip, err
}

// place finds a VIP's address in a subnet, or takes the one that is asked for, and makes its port.
func place(tx *northbound.Tx, q *request, project string, s network.Subnet, asked, port, name string) (rowform.VIP, error) {
	var none rowform.VIP
	if made, has := q.made[name]; s.Network.Neutron && has && s.CIDR.Contains(made.Address) {
		return rowform.VIP{Address: made.Address, Port: made.ID}, nil
	}
	if s.Network.Neutron {
		return none, invalid("Network %s is Neutron's, which allocates its addresses: create a port there, and give its ID as vip_port_id.", s.Network.ID)
	}
	vip, err := netip.ParseAddr(asked)
	switch {
	case asked == "":
		var free bool
		if vip, free = network.Free(tx, s, q.id); !free {
			return none, refused("No more IP addresses available on network %s.", s.Network.ID)
		}
	case err != nil || !s.Host(vip):
		return none, refused("IP address %s is not a valid IP for the specified subnet.", asked)
	case network.Used(tx, s.Network, vip):
		return none, refused("IP address %s already allocated in subnet %s", vip, s.ID)
	}
	network.AddPort(tx, port, name, project, s, vip)
	return rowform.VIP{Address: vip, Port: port}, nil
}

// placeAdditional places the additional VIPs, each in a subnet of its own in the network of the first VIP.
func (a *API) placeAdditional(tx *northbound.Tx, q *request, in balancerRequest, first network.Subnet, ports []string) (vips []rowform.VIP, ids []string, err error) {
	subnets, seen := make([]network.Subnet, len(in.Additional)), map[string]bool{first.ID: true}
	for i, v := range in.Additional {
		if subnets[i], err = a.subnet(tx, q, v.Subnet); err != nil {
			return nil, nil, err
		}
		switch {
		case seen[v.Subnet]:
			return nil, nil, invalid("Duplicate VIP subnet(s) specified. Only one IP can be bound per subnet.")
		case subnets[i].Network.ID != first.Network.ID:
			return nil, nil, invalid("All VIP subnets must belong to the same network.")
		}
		seen[v.Subnet] = true
	}
	for i, v := range in.Additional {
		vip, err := place(tx, q, in.Project, subnets[i], v.Address, ports[i], octavia.AdditionalPortName(q.id, i))
		if err != nil {
			return nil, nil, err
		}
		vips, ids = append(vips, vip), append(ids, v.Subnet)
	}
	return vips, ids, nil
}

func (a *API) vipSubnet(from northbound.Reader, q *request, in balancerRequest) (s network.Subnet, err error) {
	if in.VIPNetwork != "" {
		n, ok := network.Find(from, in.VIPNetwork)
		if !ok || !a.mayUse(q, n) {
			return s, noSuch("Network", in.VIPNetwork)
		}
		subnets := network.Subnets(from, n)
		slices.SortStableFunc(subnets, func(a, b network.Subnet) int { return a.CIDR.Addr().BitLen() - b.CIDR.Addr().BitLen() })
		i := slices.IndexFunc(subnets, func(s network.Subnet) bool {
			a, err := netip.ParseAddr(in.VIPAddress)
			return (in.VIPSubnet == "" || s.ID == in.VIPSubnet) && (err != nil || s.CIDR.Contains(a))
		})
		if i >= 0 {
			return subnets[i], named(from, n)
		}
		if in.VIPSubnet == "" {
			return s, invalid("Supplied network does not contain a subnet.")
		}
		return s, noSuch("Subnet", in.VIPSubnet)
	}
	return a.subnet(from, q, in.VIPSubnet)
}

// vipOfPort takes the address of a port that is there, in one of its network's subnets.
func (a *API) vipOfPort(tx *northbound.Tx, q *request, in balancerRequest) (s network.Subnet, vip rowform.VIP, err error) {
	lsp, ok := northbound.One(tx, northbound.SwitchPortByName, in.VIPPort, "type", "addresses", "dynamic_addresses", "external_ids")
	if !ok {
		return s, vip, noSuch("Port", in.VIPPort)
	}
	port := network.NewPort(lsp)
	if other, is := octavia.OfPort(tx, in.VIPPort); is {
		port.User = other
	}
	for _, ls := range northbound.Find(tx, northbound.SwitchOfPort, lsp.UUID, "name") {
		n, ok := network.Find(tx, network.IDOf(ls))
		if !ok || !a.mayUse(q, n) || !q.caller.Writes(port.Project) {
			return s, vip, noSuch("Port", in.VIPPort)
		}
		if err := named(tx, n); err != nil {
			return s, vip, err
		}
		if port.User != "" {
			return s, vip, invalid("Port %s is already used by device %s ", in.VIPPort, port.User)
		}
		for _, s := range network.Subnets(tx, n) {
			for _, ip := range network.AddressesOf(lsp) {
				if s.CIDR.Contains(ip) && (in.VIPAddress == "" || in.VIPAddress == ip.String()) {
					return s, rowform.VIP{Address: ip, Port: in.VIPPort}, nil
				}
			}
		}
	}
	return s, vip, invalid("Port %s has no address in a known subnet.", in.VIPPort)
}
