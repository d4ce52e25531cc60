package api

import (
	"net/http"
	"net/netip"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
)

var (
	memberBody = object{"member", "member_"}

	memberUpdate = fields{
		{name: "name", check: text(255), null: ""},
		{name: "admin_state_up", check: boolean},
		{name: "weight", check: number(0, 256), null: 1},
		{name: "backup", check: boolean, null: false},
		{name: "monitor_address", check: address},
		{name: "monitor_port", check: number(1, 65535)},
		{name: "tags", check: tags},
	}
	memberCreate = append(slices.Clone(memberUpdate), fields{
		{name: "address", check: address, required: true},
		{name: "protocol_port", check: number(1, 65535), required: true},
		{name: "subnet_id", check: id},
		{name: "project_id", check: text(36)},
		{name: "tenant_id", check: text(36)},
	}...)
)

type memberRequest struct {
	Name           *string   `json:"name"`
	AdminStateUp   *bool     `json:"admin_state_up"`
	Weight         *int      `json:"weight"`
	Backup         *bool     `json:"backup"`
	MonitorAddress *string   `json:"monitor_address"`
	MonitorPort    *int      `json:"monitor_port"`
	Tags           *[]string `json:"tags"`
	Address        string    `json:"address"`
	Port           uint16    `json:"protocol_port"`
	Subnet         string    `json:"subnet_id"`
}

// Member is one in an answer.
type Member struct {
	ID                 string   `json:"id"`
	Name               string   `json:"name"`
	OperatingStatus    string   `json:"operating_status"`
	ProvisioningStatus string   `json:"provisioning_status"`
	AdminStateUp       bool     `json:"admin_state_up"`
	Address            string   `json:"address"`
	Port               uint16   `json:"protocol_port"`
	Weight             int      `json:"weight"`
	Backup             bool     `json:"backup"`
	Subnet             *string  `json:"subnet_id"`
	Project            string   `json:"project_id"`
	CreatedAt          *string  `json:"created_at"`
	UpdatedAt          *string  `json:"updated_at"`
	MonitorAddress     *string  `json:"monitor_address"`
	MonitorPort        *int     `json:"monitor_port"`
	Tags               []string `json:"tags"`
	VNICType           string   `json:"vnic_type"`
	Tenant             string   `json:"tenant_id"`
}

func viewMember(b *octavia.Balancer, r *rowform.Row, m rowform.Member) Member {
	a, project := octavia.MemberAttributes(r, m.ID), b.Attributes().Project
	v := Member{
		ID: m.ID, Name: a.Name, OperatingStatus: r.Status.Get(m.ID), ProvisioningStatus: active, AdminStateUp: r.Status.Get(m.ID) != rowform.StatusOffline,
		Address: m.Addr.Addr().String(), Port: m.Addr.Port(), Weight: 1, Backup: a.Backup, Subnet: orNull(m.Subnet), Project: project,
		CreatedAt: orNull(a.Created), UpdatedAt: orNull(a.Updated), Tags: orEmpty(a.Tags), VNICType: "normal", Tenant: project,
	}
	if a.AnySubnet {
		v.Subnet = nil
	}
	if v.OperatingStatus == "" {
		v.OperatingStatus = rowform.StatusNoMonitor
	}
	set(&v.Weight, a.Weight)
	return v
}

func (in memberRequest) check() error {
	switch {
	case in.MonitorAddress != nil || in.MonitorPort != nil:
		return unsupported("OVN Load Balancer does not support different member monitor address or port.")
	case in.Address == "169.254.169.254":
		return fail(http.StatusBadRequest, "169.254.169.254 is not a valid option for member address")
	}
	return nil
}

func (in memberRequest) apply(r *rowform.Row, id string, a *octavia.Attributes) {
	set(&a.Name, in.Name)
	set(&a.Tags, in.Tags)
	set(&a.Backup, in.Backup)
	if in.Weight != nil {
		a.Weight = in.Weight
	}
	if in.AdminStateUp != nil && *in.AdminStateUp != (r.Status.Get(id) != rowform.StatusOffline) {
		state := rowform.StatusOffline
		if *in.AdminStateUp {
			state = rowform.StatusNoMonitor
		}
		r.Status.Set(id, state)
	}
}

// memberSubnet is a member's: the one that it names, else the VIP's, if it is in there.
func (a *API) memberSubnet(tx *northbound.Tx, q *request, in memberRequest, b *octavia.Balancer, ip netip.Addr) (network.Subnet, error) {
	if in.Subnet != "" {
		return a.subnet(tx, q, in.Subnet)
	}
	s, ok := network.FindSubnet(tx, b.Attributes().Subnet)
	if !ok || !s.CIDR.Contains(ip) {
		return s, unsupported("Subnet is required, or Loadbalancer associated with Pool must have a subnet, for Member creation with OVN Provider Driver if it is not the same as LB VIP subnet")
	}
	return s, nil
}

// ofPool finds the load balancer of the path's pool.
func ofPool(q *request) func(northbound.Reader) (string, error) {
	pool := q.PathValue("pool")
	return func(from northbound.Reader) (string, error) {
		balancer, ok := octavia.BalancerOf(from, octavia.KindPool, pool)
		if !ok {
			return "", frameworkError(http.StatusNotFound, "Bad Request", "Pool "+pool+" not found.")
		}
		return balancer, nil
	}
}

// member finds the path's member in the path's pool.
func (q *request) member(b *octavia.Balancer) (octavia.Found, int, error) {
	id := q.PathValue("id")
	f, ok := b.Pool(q.PathValue("pool"))
	if !ok {
		return f, 0, notFound("Pool", q.PathValue("pool"))
	}
	i := slices.IndexFunc(f.Row.Pools[f.Index].Members, func(m rowform.Member) bool { return m.ID == id })
	if i < 0 {
		return f, 0, notFound("Member", id)
	}
	return f, i, nil
}

func (a *API) createMember(q *request) (int, any, error) {
	var in memberRequest
	if err := memberBody.read(q.body, memberCreate, &in); err != nil {
		return 0, nil, err
	}
	if err := in.check(); err != nil {
		return 0, nil, err
	}
	addr, err := netip.ParseAddr(in.Address)
	if err != nil {
		return 0, nil, err
	}
	endpoint := netip.AddrPortFrom(addr, in.Port)
	var v Member
	err = a.change(q, "create member", ofPool(q), func(tx *northbound.Tx, b *octavia.Balancer) error {
		f, _ := b.Pool(q.PathValue("pool"))
		members := f.Row.Pools[f.Index].Members
		if i := slices.IndexFunc(members, func(m rowform.Member) bool { return m.Addr == endpoint }); i >= 0 {
			if tx.Again && members[i].ID == q.id {
				v = viewMember(b, f.Row, members[i])
				return nil
			}
			return fail(http.StatusConflict, "Another member on this pool is already using ip %s on protocol_port %d", addr, in.Port)
		}
		if !f.Row.HasFamily(addr) {
			return unsupported("OVN provider does not support mixing IPv4/IPv6 configuration within the same Load Balancer.")
		}
		s, err := a.memberSubnet(tx, q, in, b, addr)
		if err != nil {
			return err
		}
		m := rowform.Member{ID: q.id, Addr: endpoint, Subnet: s.ID}
		b.AddMember(f.Row, f.Index, m, s.Network, rowform.StatusNoMonitor)
		at := octavia.Attributes{Created: q.now, AnySubnet: in.Subnet == ""}
		in.apply(f.Row, q.id, &at)
		octavia.SetMemberAttributes(f.Row, q.id, at)
		octavia.Weigh(f.Row, endpoint)
		v = viewMember(b, f.Row, m)
		return nil
	})
	return http.StatusCreated, map[string]Member{"member": v}, err
}

func (a *API) showMember(q *request) (int, any, error) {
	v, err := child(a, q, ofPool(q), func(b *octavia.Balancer) (Member, error) {
		f, i, err := q.member(b)
		if err != nil {
			return Member{}, err
		}
		return viewMember(b, f.Row, f.Row.Pools[f.Index].Members[i]), nil
	})
	return answerOne(q, "member", v, err)
}

func (a *API) updateMember(q *request) (int, any, error) {
	var in memberRequest
	if err := memberBody.read(q.body, memberUpdate, &in); err != nil {
		return 0, nil, err
	}
	if err := in.check(); err != nil {
		return 0, nil, err
	}
	var v Member
	err := a.change(q, "update member", ofPool(q), func(_ *northbound.Tx, b *octavia.Balancer) error {
		f, i, err := q.member(b)
		if err != nil {
			return err
		}
		m := f.Row.Pools[f.Index].Members[i]
		at := octavia.MemberAttributes(f.Row, m.ID)
		in.apply(f.Row, m.ID, &at)
		at.Updated = q.now
		octavia.SetMemberAttributes(f.Row, m.ID, at)
		if in.Weight != nil {
			octavia.Weigh(f.Row, m.Addr)
		}
		v = viewMember(b, f.Row, m)
		return nil
	})
	return http.StatusOK, map[string]Member{"member": v}, err
}

func (a *API) deleteMember(q *request) (int, any, error) {
	return a.remove(q, "delete member", ofPool(q), func(tx *northbound.Tx, b *octavia.Balancer) error {
		f, i, err := q.member(b)
		if err != nil {
			return err
		}
		m := f.Row.Pools[f.Index].Members[i]
		b.RemoveMember(f.Row, f.Index, m.ID, networkOf(tx, m))
		return nil
	})
}

func (a *API) listMembers(q *request) (int, any, error) {
	out, err := child(a, q, ofPool(q), func(b *octavia.Balancer) ([]Member, error) {
		out := []Member{}
		f, _ := b.Pool(q.PathValue("pool"))
		for _, m := range f.Row.Pools[f.Index].Members {
			out = append(out, viewMember(b, f.Row, m))
		}
		return out, nil
	})
	if err != nil {
		return 0, nil, err
	}
	return answerList(q, "members", out, func(m Member) map[string]string { return map[string]string{"ip_address": m.Address} })
}
