package api

import (
	"errors"
	"net/http"
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
		{name: "tags", check: tags},
		{name: "vip_qos_policy_id", check: unknownID("qos_policy")},
		{name: "vip_sg_ids", check: list(unknownID("Security Group"))},
	}
	balancerCreate = append(slices.Clone(balancerUpdate), fields{
		{name: "vip_address", check: address},
		{name: "vip_port_id", check: id},
		{name: "vip_subnet_id", check: id},
		{name: "vip_network_id", check: id},
		{name: "project_id", check: text(36)},
		{name: "tenant_id", check: text(36)},
		{name: "provider", check: text(64)},
		{name: "flavor_id", check: without(invalid("Invalid flavor_id."))},
		{name: "availability_zone", check: without(invalid("Invalid availability zone."))},
		{name: "additional_vips", check: list(additional)},
	}...)

	additionalFields = fields{
		{name: "subnet_id", check: id, required: true},
		{name: "ip_address", check: address},
	}
)

func additional(value any) (any, error) {
	attributes, is := value.(dict)
	if !is {
		return nil, typeError("Value not a valid object: " + repr(value))
	}
	return additionalFields.take("load_balancer.loadbalancer.additional_vips", attributes)
}

// unknownID is an ID of something that OVN does not have: none is known.
func unknownID(kind string) func(any) (any, error) {
	return func(value any) (any, error) {
		v, err := id(value)
		if err != nil {
			return nil, err
		}
		return nil, noSuch(kind, v.(string))
	}
}

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

	Additional []additionalVIP `json:"additional_vips"`
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
		more := additionalVIP{Address: vip.Address.String()}
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
	ports := make([]string, len(in.Additional))
	for i := range ports {
		ports[i] = a.newID()
	}
	if err := a.makePorts(q, in); err != nil {
		return 0, nil, err
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
		additional, subnets, err := a.placeAdditional(tx, q, in, subnet, ports)
		if err != nil {
			return err
		}
		b := octavia.New(tx, q.id, q.row, subnet.Network, vip, additional...)
		b.Rows[0].Enabled = in.AdminStateUp == nil || *in.AdminStateUp
		b.SetAttributes(octavia.Attributes{
			Name: value(in.Name), Description: value(in.Description), Project: in.Project, Tags: value(in.Tags), Created: q.now,
			Subnet: subnet.ID, Network: subnet.Network.ID, OwnPort: vip.Port == q.port, AdditionalSubnets: subnets,
			NeutronPorts: q.made.ids(),
		})
		b.Save()
		made = viewBalancer(b)
		return nil
	})
	a.settlePorts(q, err)
	return http.StatusCreated, map[string]LoadBalancer{"loadbalancer": made}, err
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

func (a *API) listBalancers(q *request) (int, any, error) {
	out := []LoadBalancer{}
	err := a.each(q, func(b *octavia.Balancer) { out = append(out, viewBalancer(b)) })
	if err != nil {
		return 0, nil, err
	}
	return answerList(q, "loadbalancers", out, nil)
}

// balancer is one that the caller may see.
func (q *request) balancer(from northbound.Reader, id string) (*octavia.Balancer, error) {
	b, err := octavia.Load(from, id)
	if errors.Is(err, octavia.ErrNotFound) {
		return nil, notFound("Load Balancer", id)
	}
	if err != nil {
		return nil, err
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
	return answerOne(q, "loadbalancer", v, err)
}

// belowBalancer answers paths below a load balancer that it does not have.
func (a *API) belowBalancer(q *request) (int, any, error) {
	if _, _, err := a.showBalancer(q); err != nil {
		return 0, nil, err
	}
	return 0, nil, errNoPath
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
	var ports []string
	err := a.store.Commit(q.Context(), "delete load balancer", func(tx *northbound.Tx) error {
		b, err := octavia.Load(tx, id)
		gone := errors.Is(err, octavia.ErrNotFound)
		switch {
		case gone && tx.Again:
			return nil
		case gone:
			return notFound("Load Balancer", id)
		case err != nil:
			return err
		case !q.caller.Writes(b.Attributes().Project):
			return errPolicy
		case !cascade && slices.ContainsFunc(b.Rows, func(r *rowform.Row) bool { return !r.Empty() }):
			return invalid("Cannot delete Load Balancer %s - it has children", id)
		}
		network.RemovePort(tx, b.Rows[0].VIP.Port, octavia.PortName(id))
		for i, vip := range b.Rows[0].Additional {
			network.RemovePort(tx, vip.Port, octavia.AdditionalPortName(id, i))
		}
		ports = b.Attributes().NeutronPorts
		b.Delete()
		return nil
	})
	if err == nil {
		a.dropPorts(q, ports)
	}
	return http.StatusNoContent, nil, err
}
