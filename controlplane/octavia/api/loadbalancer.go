package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
)

var (
	balancerBody = object{"loadbalancer", "load_balancer"}

	balancerUpdate = fields{
		{name: "name", check: text(255), null: ""},
		{name: "description", check: text(255), null: ""},
		{name: "admin_state_up", check: boolean},
		{name: "tags", check: tags, null: []string{}},
	}
	balancerCreate = append(slices.Clone(balancerUpdate), fields{
		{name: "vip_address", check: address},
		{name: "vip_port_id", check: id},
		{name: "vip_subnet_id", check: id},
		{name: "vip_network_id", check: id},
		{name: "project_id", check: text(36)},
		{name: "tenant_id", check: text(36)},
		{name: "provider", check: text(64)},
	}...)
)

// balancerRequest is what a load balancer is made or changed with.
type balancerRequest struct {
	Name         *string   `json:"name"`
	Description  *string   `json:"description"`
	AdminStateUp *bool     `json:"admin_state_up"`
	Tags         *[]string `json:"tags"`
	VIPAddress   string    `json:"vip_address"`
	VIPPort      string    `json:"vip_port_id"`
	VIPSubnet    string    `json:"vip_subnet_id"`
	VIPNetwork   string    `json:"vip_network_id"`
	Project      string    `json:"project_id"`
	Tenant       string    `json:"tenant_id"`
	Provider     string    `json:"provider"`
}

// LoadBalancer is one in an answer.
type LoadBalancer struct {
	Listeners          []ref           `json:"listeners"`
	Pools              []ref           `json:"pools"`
	ID                 string          `json:"id"`
	Name               string          `json:"name"`
	Description        string          `json:"description"`
	ProvisioningStatus string          `json:"provisioning_status"`
	OperatingStatus    string          `json:"operating_status"`
	AdminStateUp       bool            `json:"admin_state_up"`
	Project            string          `json:"project_id"`
	CreatedAt          *string         `json:"created_at"`
	UpdatedAt          *string         `json:"updated_at"`
	VIPAddress         string          `json:"vip_address"`
	VIPPort            string          `json:"vip_port_id"`
	VIPSubnet          *string         `json:"vip_subnet_id"`
	VIPNetwork         *string         `json:"vip_network_id"`
	VIPSecurityGroups  []string        `json:"vip_sg_ids"`
	AdditionalVIPs     []additionalVIP `json:"additional_vips"`
	Provider           string          `json:"provider"`
	Flavor             *string         `json:"flavor_id"`
	QoSPolicy          *string         `json:"vip_qos_policy_id"`
	Tags               []string        `json:"tags"`
	AvailabilityZone   *string         `json:"availability_zone"`
	VNICType           string          `json:"vip_vnic_type"`
	Tenant             string          `json:"tenant_id"`
}

type ref struct {
	ID string `json:"id"`
}

type additionalVIP struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
	Port    string `json:"port_id"`
}

// The states of an answer. What is in the database is done: nothing is ever pending.
const (
	active = "ACTIVE"

	online   = "ONLINE"
	offline  = "OFFLINE"
	degraded = "DEGRADED"
	failed   = "ERROR"
)

func viewBalancer(b *octavia.Balancer) LoadBalancer {
	first, a := b.Rows[0], b.Attributes()
	v := LoadBalancer{
		Listeners: []ref{}, Pools: []ref{}, ID: first.Balancer, Name: a.Name, Description: a.Description, ProvisioningStatus: active,
		OperatingStatus: operatingBalancer(b), AdminStateUp: first.Enabled, Project: a.Project, CreatedAt: orNull(a.Created), UpdatedAt: orNull(a.Updated),
		VIPAddress: first.VIP.Address.String(), VIPPort: first.VIP.Port, VIPSubnet: orNull(a.Subnet), VIPNetwork: orNull(a.Network),
		VIPSecurityGroups: []string{}, AdditionalVIPs: []additionalVIP{}, Provider: "ovn", Tags: orEmpty(a.Tags), VNICType: "normal", Tenant: a.Project,
	}
	for i, vip := range first.Additional {
		more := additionalVIP{Address: vip.Address.String(), Port: vip.Port}
		if i < len(a.AdditionalSubnets) {
			more.Subnet = a.AdditionalSubnets[i]
		}
		v.AdditionalVIPs = append(v.AdditionalVIPs, more)
	}
	for _, r := range b.Rows {
		for _, l := range r.Listeners {
			v.Listeners = append(v.Listeners, ref{l.ID})
		}
		for _, p := range r.Pools {
			v.Pools = append(v.Pools, ref{p.ID})
		}
	}
	return v
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// operatingPool is a pool's operating status: of its members', and whether a listener uses it.
func operatingPool(r *rowform.Row, p rowform.Pool) string {
	if !p.Enabled || len(p.Members) == 0 {
		return offline
	}
	broken := 0
	for _, m := range p.Members {
		if r.Status.Get(m.ID) == rowform.StatusError {
			broken++
		}
	}
	switch {
	case broken == len(p.Members):
		return failed
	case broken > 0:
		return degraded
	}
	return online
}

// operatingListener is a listener's: that of its pool, if something is wrong there.
func operatingListener(r *rowform.Row, l rowform.Listener) string {
	if !l.Enabled {
		return offline
	}
	i := slices.IndexFunc(r.Pools, func(p rowform.Pool) bool { return p.ID == l.Pool })
	if i < 0 {
		return online
	}
	if s := operatingPool(r, r.Pools[i]); s == failed || s == degraded {
		return s
	}
	return online
}

func operatingBalancer(b *octavia.Balancer) string {
	if !b.Rows[0].Enabled {
		return offline
	}
	worst := online
	for _, r := range b.Rows {
		for _, l := range r.Listeners {
			switch s := operatingListener(r, l); {
			case s == failed:
				return failed
			case s == degraded:
				worst = degraded
			}
		}
	}
	return worst
}

func (a *API) createBalancer(q *request) (int, any, error) {
	var in balancerRequest
	if err := balancerBody.read(q.body, balancerCreate, &in); err != nil {
		return 0, nil, err
	}
	if in.Project == "" {
		in.Project = in.Tenant
	}
	if in.Project == "" {
		in.Project = q.caller.Project
	}
	switch {
	case in.Project == "":
		return 0, nil, invalid("Missing project ID in request where one is required. An administrator should check the keystone settings in the Octavia configuration.")
	case !q.caller.Writes(in.Project):
		return 0, nil, errPolicy
	case in.Provider != "" && in.Provider != "ovn" && in.Provider != "sluice":
		return 0, nil, fail(http.StatusBadRequest, "Provider '%s' is not enabled.", in.Provider)
	case in.VIPPort == "" && in.VIPNetwork == "" && in.VIPSubnet == "":
		return 0, nil, invalid("VIP must contain one of: vip_port_id, vip_network_id, vip_subnet_id.")
	}
	var made LoadBalancer
	err := a.store.Commit(q.Context(), "create load balancer", func(tx *northbound.Tx) error {
		if tx.Again {
			if b, err := octavia.Load(tx, q.id); err == nil {
				made = viewBalancer(b)
				return nil
			}
		}
		subnet, vip, err := a.placeVIP(tx, q, in)
		if err != nil {
			return err
		}
		b := octavia.New(tx, q.id, q.row, subnet.Network, vip)
		b.Rows[0].Enabled = in.AdminStateUp == nil || *in.AdminStateUp
		b.SetAttributes(octavia.Attributes{
			Name: value(in.Name), Description: value(in.Description), Project: in.Project, Tags: value(in.Tags), Created: q.now,
			Subnet: subnet.ID, Network: subnet.Network.ID, OwnPort: vip.Port == q.port,
		})
		b.Save()
		made = viewBalancer(b)
		return nil
	})
	return http.StatusCreated, map[string]LoadBalancer{"loadbalancer": made}, err
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

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
	if s.Network.Neutron {
		return s, none, invalid("Network %s is Neutron's, which allocates its addresses: make a port there, and give its ID as vip_port_id.", s.Network.ID)
	}
	vip, err := netip.ParseAddr(in.VIPAddress)
	switch {
	case in.VIPAddress == "":
		var free bool
		if vip, free = network.Free(tx, s, q.id); !free {
			return s, none, refused("No more IP addresses available on network %s.", s.Network.ID)
		}
	case err != nil || !s.CIDR.Contains(vip):
		return s, none, refused("IP address %s is not a valid IP for the specified subnet.", in.VIPAddress)
	case network.Used(tx, s.Network)[vip]:
		return s, none, refused("IP address %s already allocated in subnet %s", vip, s.ID)
	}
	network.AddPort(tx, q.port, octavia.PortName(q.id), in.Project, s, vip)
	return s, rowform.VIP{Address: vip, Port: q.port}, nil
}

func (a *API) vipSubnet(tx *northbound.Tx, q *request, in balancerRequest) (s network.Subnet, err error) {
	if in.VIPNetwork != "" {
		n, ok := network.Find(tx, in.VIPNetwork)
		if !ok || !a.mayUse(q, n) {
			return s, noSuch("Network", in.VIPNetwork)
		}
		subnets := network.Subnets(tx, n)
		i := slices.IndexFunc(subnets, func(s network.Subnet) bool {
			a, err := netip.ParseAddr(in.VIPAddress)
			return (in.VIPSubnet == "" || s.ID == in.VIPSubnet) && (err != nil || s.CIDR.Contains(a))
		})
		if i >= 0 {
			return subnets[i], nil
		}
		if in.VIPSubnet == "" {
			return s, invalid("Supplied network does not contain a subnet.")
		}
		return s, noSuch("Subnet", in.VIPSubnet)
	}
	return a.subnet(tx, q, in.VIPSubnet)
}

// vipOfPort takes the address of a port that is there, in one of its network's subnets.
func (a *API) vipOfPort(tx *northbound.Tx, q *request, in balancerRequest) (s network.Subnet, vip rowform.VIP, err error) {
	lsp, ok := northbound.One(tx, northbound.SwitchPortByName, in.VIPPort, "addresses", "dynamic_addresses", "external_ids")
	if !ok {
		return s, vip, noSuch("Port", in.VIPPort)
	}
	for _, ls := range northbound.Find(tx, northbound.SwitchOfPort, lsp.UUID, "name") {
		n, ok := network.Find(tx, network.IDOf(ls))
		if !ok || !a.mayUse(q, n) {
			return s, vip, noSuch("Port", in.VIPPort)
		}
		for _, s := range network.Subnets(tx, n) {
			for _, ip := range network.AddressesOf(lsp) {
				if s.CIDR.Contains(ip) && (in.VIPAddress == "" || in.VIPAddress == ip.String()) {
					return s, rowform.VIP{Address: ip, Port: in.VIPPort}, nil
				}
			}
		}
	}
	return s, vip, invalid("Port %s has no address in a subnet that is known.", in.VIPPort)
}

func (a *API) listBalancers(q *request) (int, any, error) {
	s, err := a.store.Current(q.Context())
	if err != nil {
		return 0, nil, err
	}
	out := []LoadBalancer{}
	for _, id := range octavia.IDs(s) {
		b, err := octavia.Load(s, id)
		if err != nil || !q.caller.Reads(b.Attributes().Project) {
			continue
		}
		v := viewBalancer(b)
		take, err := matches(q.URL.Query(), map[string]string{
			"id": v.ID, "name": v.Name, "description": v.Description, "project_id": v.Project, "tenant_id": v.Project, "vip_address": v.VIPAddress,
			"vip_port_id": v.VIPPort, "vip_subnet_id": value(v.VIPSubnet), "vip_network_id": value(v.VIPNetwork), "provider": v.Provider,
			"provisioning_status": v.ProvisioningStatus, "operating_status": v.OperatingStatus, "admin_state_up": strconv.FormatBool(v.AdminStateUp),
		})
		if err != nil {
			return 0, nil, err
		}
		if take {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b LoadBalancer) int { return compareCreated(a.CreatedAt, b.CreatedAt, a.ID, b.ID) })
	return http.StatusOK, map[string]any{"loadbalancers": out, "loadbalancers_links": []any{}}, nil
}

// compareCreated orders as Octavia's lists are without another wish.
func compareCreated(a, b *string, idA, idB string) int {
	if value(a) != value(b) {
		if value(a) < value(b) {
			return -1
		}
		return 1
	}
	if idA < idB {
		return -1
	}
	return 1
}

// balancer is one that the caller may see.
func (q *request) balancer(from northbound.Reader, id string) (*octavia.Balancer, error) {
	b, err := octavia.Load(from, id)
	if err != nil {
		return nil, notFound("Load Balancer", id)
	}
	if !q.caller.Reads(b.Attributes().Project) {
		return nil, errPolicy
	}
	return b, nil
}

func (a *API) showBalancer(q *request) (int, any, error) {
	v, err := view(a, q, func(from *northbound.Snapshot) (LoadBalancer, error) {
		b, err := q.balancer(from, q.PathValue("id"))
		if err != nil {
			return LoadBalancer{}, err
		}
		return viewBalancer(b), nil
	})
	return http.StatusOK, map[string]LoadBalancer{"loadbalancer": v}, err
}

func (a *API) updateBalancer(q *request) (int, any, error) {
	var in balancerRequest
	if err := balancerBody.read(q.body, balancerUpdate, &in); err != nil {
		return 0, nil, err
	}
	var v LoadBalancer
	err := a.change(q, "update load balancer", pathID(q, "id"), func(_ *northbound.Tx, b *octavia.Balancer) error {
		at := b.Attributes()
		set(&at.Name, in.Name)
		set(&at.Description, in.Description)
		set(&at.Tags, in.Tags)
		at.Updated = q.now
		for _, r := range b.Rows {
			set(&r.Enabled, in.AdminStateUp)
		}
		b.SetAttributes(at)
		v = viewBalancer(b)
		return nil
	})
	return http.StatusOK, map[string]LoadBalancer{"loadbalancer": v}, err
}

func set[T any](to *T, v *T) {
	if v != nil {
		*to = *v
	}
}

func pathID(q *request, name string) func(northbound.Reader) (string, error) {
	return func(northbound.Reader) (string, error) { return q.PathValue(name), nil }
}

func (a *API) deleteBalancer(q *request) (int, any, error) {
	id := q.PathValue("id")
	cascade, _ := strconv.ParseBool(q.URL.Query().Get("cascade"))
	err := a.store.Commit(q.Context(), "delete load balancer", func(tx *northbound.Tx) error {
		b, err := octavia.Load(tx, id)
		switch {
		case err != nil && tx.Again:
			return nil
		case err != nil:
			return notFound("Load Balancer", id)
		case !q.caller.Writes(b.Attributes().Project):
			return errPolicy
		case !cascade && slices.ContainsFunc(b.Rows, func(r *rowform.Row) bool { return !r.Empty() }):
			return invalid("Cannot delete Load Balancer %s - it has children", id)
		}
		for _, vip := range slices.Concat([]rowform.VIP{b.Rows[0].VIP}, b.Rows[0].Additional) {
			network.RemovePort(tx, vip.Port, octavia.PortName(id))
		}
		b.Delete()
		return nil
	})
	return http.StatusNoContent, nil, err
}
