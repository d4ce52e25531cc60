package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
)

var (
	poolBody = object{"pool", "pool_"}

	// poolCommon are the attributes that a pool is made and changed with.
	poolCommon = fields{
		{name: "name", check: text(255), null: ""},
		{name: "description", check: text(255), null: ""},
		{name: "admin_state_up", check: boolean},
		{name: "lb_algorithm", check: oneOf("ROUND_ROBIN", "SOURCE_IP", "SOURCE_IP_PORT", "LEAST_CONNECTIONS")},
		{name: "tags", check: tags},
		{name: "tls_enabled", check: withoutTLS("tls_enabled")},
		{name: "tls_container_ref", check: withoutTLS("tls_container_ref")},
		{name: "ca_tls_container_ref", check: withoutTLS("ca_tls_container_ref")},
		{name: "crl_container_ref", check: withoutTLS("crl_container_ref")},
		{name: "tls_ciphers", check: withoutTLS("tls_ciphers")},
		{name: "tls_versions", check: withoutTLS("tls_versions")},
		{name: "alpn_protocols", check: withoutTLS("alpn_protocols")},
	}
	poolUpdate = append(slices.Clone(poolCommon), fields{
		{name: "session_persistence", check: persistence(persistenceUpdate), null: Persistence{}},
	}...)
	poolCreate = append(slices.Clone(poolCommon), fields{
		{name: "session_persistence", check: persistence(persistenceCreate)},
		{name: "protocol", check: oneOf("HTTPS", "PROXY", "SCTP", "UDP", "HTTP", "TCP", "PROXYV2"), required: true},
		{name: "loadbalancer_id", check: id},
		{name: "listener_id", check: id},
		{name: "project_id", check: text(36)},
		{name: "tenant_id", check: text(36)},
	}...)

	persistenceUpdate = fields{
		{name: "type", check: persistenceType},
		{name: "cookie_name", check: text(255)},
		{name: "persistence_timeout", check: number(1, 65535)},
		{name: "persistence_granularity", check: text(64)},
	}
	persistenceCreate = append(fields{
		{name: "type", check: persistenceType, required: true},
	}, persistenceUpdate[1:]...)
)

var persistenceType = oneOf("SOURCE_IP", "APP_COOKIE", "HTTP_COOKIE")

func persistence(f fields) func(any) (any, error) {
	return func(value any) (any, error) {
		attributes, is := value.(dict)
		if !is {
			return nil, typeError("Value not a valid object: " + repr(value))
		}
		out, err := f.take("pool_.pool.session_persistence", attributes)
		if err == nil && out["type"] == nil {
			err = invalid("Invalid session_persistence provided.")
		}
		return out, err
	}
}

// withoutTLS refuses a pool's option of TLS: OVN balances connections as they come.
func withoutTLS(option string) func(any) (any, error) {
	return without(unsupported("OVN provider does not support %s option", option))
}

// Persistence has a client stay at its backend.
type Persistence struct {
	Type        string  `json:"type"`
	CookieName  *string `json:"cookie_name"`
	Timeout     *int    `json:"persistence_timeout"`
	Granularity *string `json:"persistence_granularity"`
}

// defaultAffinity is what ovn-octavia-provider takes without a time, in seconds.
const defaultAffinity = "360"

type poolRequest struct {
	Name         *string      `json:"name"`
	Description  *string      `json:"description"`
	AdminStateUp *bool        `json:"admin_state_up"`
	Tags         *[]string    `json:"tags"`
	Algorithm    string       `json:"lb_algorithm"`
	Persistence  *Persistence `json:"session_persistence"`
	Protocol     string       `json:"protocol"`
	Balancer     string       `json:"loadbalancer_id"`
	Listener     string       `json:"listener_id"`
}

// Pool is one in an answer.
type Pool struct {
	ID                 string          `json:"id"`
	Name               string          `json:"name"`
	Description        string          `json:"description"`
	ProvisioningStatus string          `json:"provisioning_status"`
	OperatingStatus    string          `json:"operating_status"`
	AdminStateUp       bool            `json:"admin_state_up"`
	Protocol           string          `json:"protocol"`
	Algorithm          string          `json:"lb_algorithm"`
	Persistence        json.RawMessage `json:"session_persistence"`
	Project            string          `json:"project_id"`
	LoadBalancers      []ref           `json:"loadbalancers"`
	Listeners          []ref           `json:"listeners"`
	CreatedAt          *string         `json:"created_at"`
	UpdatedAt          *string         `json:"updated_at"`
	HealthMonitor      *string         `json:"healthmonitor_id,omitempty"`
	Members            []ref           `json:"members"`
	Tags               []string        `json:"tags"`
	TLSContainer       *string         `json:"tls_container_ref"`
	CATLSContainer     *string         `json:"ca_tls_container_ref"`
	CRLContainer       *string         `json:"crl_container_ref"`
	TLSEnabled         bool            `json:"tls_enabled"`
	TLSCiphers         *string         `json:"tls_ciphers"`
	TLSVersions        []string        `json:"tls_versions"`
	ALPNProtocols      []string        `json:"alpn_protocols"`
	Tenant             string          `json:"tenant_id"`
}

const sourceIPPort = "SOURCE_IP_PORT"

func viewPool(b *octavia.Balancer, f octavia.Found) Pool {
	p := f.Row.Pools[f.Index]
	a, project := octavia.PoolAttributes(f.Row, p.ID), b.Attributes().Project
	v := Pool{
		ID: p.ID, Name: a.Name, Description: a.Description, ProvisioningStatus: active, OperatingStatus: operatingPool(f.Row, p), AdminStateUp: p.Enabled,
		Protocol: strings.ToUpper(f.Row.Protocol), Algorithm: sourceIPPort, Persistence: json.RawMessage("null"), Project: project,
		LoadBalancers: []ref{{f.Row.Balancer}}, Listeners: []ref{}, CreatedAt: orNull(a.Created), UpdatedAt: orNull(a.Updated), Members: []ref{},
		Tags: orEmpty(a.Tags), Tenant: project,
	}
	if len(a.Persistence) > 0 {
		v.Persistence = a.Persistence
	}
	for _, l := range f.Row.Listeners {
		if l.Pool == p.ID {
			v.Listeners = append(v.Listeners, ref{l.ID})
		}
	}
	for _, m := range p.Members {
		v.Members = append(v.Members, ref{m.ID})
	}
	return v
}

// check refuses what OVN does not do. timed are the protocols that the message names: the one of an update
// has another list.
func (in poolRequest) check(protocol, timed string) error {
	p := in.Persistence
	switch {
	case !slices.Contains(provided, protocol):
		return unsupported("OVN provider does not support %s protocol", protocol)
	case in.Algorithm != "" && in.Algorithm != sourceIPPort:
		return unsupported("OVN provider does not support %s algorithm", in.Algorithm)
	case p == nil || p.Type == "": // null: none
		return nil
	case p.Type != "APP_COOKIE" && p.CookieName != nil:
		return invalid(`Field "cookie_name" can only be specified with session persistence of type "APP_COOKIE".`)
	case p.Type == "APP_COOKIE" && p.CookieName == nil:
		return invalid(`Field "cookie_name" must be specified when using the "APP_COOKIE" session persistence type.`)
	case p.Type != "SOURCE_IP":
		return unsupported("OVN provider does not support %s session persistence. Only SOURCE_IP type is supported.", p.Type)
	case protocol == "TCP" && (p.Timeout != nil || p.Granularity != nil):
		return invalid("persistence_timeout and persistence_granularity is only for %s protocol pools.", timed)
	}
	return nil
}

func (in poolRequest) apply(r *rowform.Row, a *octavia.Attributes) error {
	set(&a.Name, in.Name)
	set(&a.Description, in.Description)
	set(&a.Tags, in.Tags)
	switch {
	case in.Persistence == nil || in.Persistence.Type == "" && a.Persistence == nil:
		return nil
	case in.Persistence.Type == "":
		a.Persistence, r.Affinity = nil, ""
		return nil
	}
	raw, err := json.Marshal(in.Persistence)
	a.Persistence = raw
	r.Affinity = defaultAffinity
	if t := in.Persistence.Timeout; t != nil {
		r.Affinity = strconv.Itoa(*t)
	}
	return err
}

func (a *API) createPool(q *request) (int, any, error) {
	var in poolRequest
	if err := poolBody.read(q.body, poolCreate, &in); err != nil {
		return 0, nil, err
	}
	switch {
	case in.Algorithm == "":
		return 0, nil, wrongValue("lb_algorithm", "None", "Mandatory field missing.")
	case in.Balancer == "" && in.Listener == "":
		return 0, nil, invalid("Must provide at least one of: loadbalancer_id, listener_id")
	}
	load := func(from northbound.Reader) (string, error) {
		if in.Listener == "" {
			return in.Balancer, nil
		}
		id, err := ofChild(octavia.KindListener, "Listener", in.Listener)(from)
		if err == nil && in.Balancer != "" && id != in.Balancer {
			err = notFound("Listener", in.Listener)
		}
		return id, err
	}
	if err := in.check(in.Protocol, "UDP and SCTP"); err != nil {
		return 0, nil, err
	}
	var v Pool
	err := a.change(q, "create pool", load, func(tx *northbound.Tx, b *octavia.Balancer) error {
		if f, ok := b.Pool(q.id); ok && tx.Again {
			v = viewPool(b, f)
			return nil
		}
		listener, err := freeListener(b, in)
		if err != nil {
			return err
		}
		r := b.Row(strings.ToLower(in.Protocol), q.row)
		r.Pools = append(r.Pools, rowform.Pool{ID: q.id, Enabled: in.AdminStateUp == nil || *in.AdminStateUp})
		if listener != nil {
			listener.Pool = q.id
		}
		f, _ := b.Pool(q.id)
		at := octavia.Attributes{Created: q.now, Algorithm: in.Algorithm}
		if err := in.apply(r, &at); err != nil {
			return err
		}
		octavia.SetPoolAttributes(r, q.id, at)
		v = viewPool(b, f)
		return nil
	})
	return http.StatusCreated, map[string]Pool{"pool": v}, err
}

// freeListener is the listener that the pool is made for; nil for none.
func freeListener(b *octavia.Balancer, in poolRequest) (*rowform.Listener, error) {
	if in.Listener == "" {
		return nil, nil
	}
	f, _ := b.Listener(in.Listener)
	l := &f.Row.Listeners[f.Index]
	switch protocol := strings.ToUpper(f.Row.Protocol); {
	case l.Pool != "":
		return nil, fail(http.StatusConflict, "This listener already has a default pool")
	case protocol != in.Protocol:
		return nil, invalid("The pool protocol '%s' is invalid while the listener protocol is '%s'.", in.Protocol, protocol)
	}
	return l, nil
}

func (a *API) showPool(q *request) (int, any, error) {
	id := q.PathValue("id")
	v, err := child(a, q, ofChild(octavia.KindPool, "Pool", id), func(b *octavia.Balancer) (Pool, error) {
		f, _ := b.Pool(id)
		return viewPool(b, f), nil
	})
	return answerOne(q, "pool", v, err)
}

func (a *API) updatePool(q *request) (int, any, error) {
	id := q.PathValue("id")
	var in poolRequest
	if err := poolBody.read(q.body, poolUpdate, &in); err != nil {
		return 0, nil, err
	}
	var v Pool
	err := a.change(q, "update pool", ofChild(octavia.KindPool, "Pool", id), func(_ *northbound.Tx, b *octavia.Balancer) error {
		f, _ := b.Pool(id)
		if err := in.check(strings.ToUpper(f.Row.Protocol), "UDP"); err != nil {
			return err
		}
		set(&f.Row.Pools[f.Index].Enabled, in.AdminStateUp)
		at := octavia.PoolAttributes(f.Row, id)
		if err := in.apply(f.Row, &at); err != nil {
			return err
		}
		at.Updated = q.now
		octavia.SetPoolAttributes(f.Row, id, at)
		v = viewPool(b, f)
		return nil
	})
	return http.StatusOK, map[string]Pool{"pool": v}, err
}

func (a *API) deletePool(q *request) (int, any, error) {
	id := q.PathValue("id")
	return a.remove(q, "delete pool", ofChild(octavia.KindPool, "Pool", id), func(tx *northbound.Tx, b *octavia.Balancer) error {
		f, _ := b.Pool(id)
		for _, m := range slices.Clone(f.Row.Pools[f.Index].Members) {
			b.RemoveMember(f.Row, f.Index, m.ID, networkOf(tx, m))
		}
		b.RemovePool(f)
		return nil
	})
}

// networkOf is the network of a member; empty if its subnet is not known any more: what counts it
// stays as it is then.
func networkOf(tx *northbound.Tx, m rowform.Member) network.Network {
	s, _ := network.FindSubnet(tx, m.Subnet)
	return s.Network
}

func (a *API) listPools(q *request) (int, any, error) {
	out := []Pool{}
	err := a.each(q, func(b *octavia.Balancer) {
		for _, r := range b.Rows {
			for i := range r.Pools {
				out = append(out, viewPool(b, octavia.Found{Row: r, Index: i}))
			}
		}
	})
	if err != nil {
		return 0, nil, err
	}
	return answerList(q, "pools", out, func(p Pool) map[string]string { return ofBalancer(p.LoadBalancers) })
}
