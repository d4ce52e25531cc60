package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
)

var (
	listenerBody = object{"listener", "listener_"}

	listenerUpdate = fields{
		{name: "name", check: text(255), null: ""},
		{name: "description", check: text(255), null: ""},
		{name: "admin_state_up", check: boolean},
		{name: "connection_limit", check: number(-1, 1<<31-1), null: limits["connection_limit"]},
		{name: "default_pool_id", check: id, null: ""},
		{name: "timeout_client_data", check: number(0, mostMilliseconds), null: limits["timeout_client_data"]},
		{name: "timeout_member_connect", check: number(0, mostMilliseconds), null: limits["timeout_member_connect"]},
		{name: "timeout_member_data", check: number(0, mostMilliseconds), null: limits["timeout_member_data"]},
		{name: "timeout_tcp_inspect", check: number(0, mostMilliseconds), null: limits["timeout_tcp_inspect"]},
		{name: "allowed_cidrs", check: list(text(64))},
		{name: "tags", check: tags},
		{name: "insert_headers", check: without(fail(http.StatusBadRequest, "insert-headers is not a valid option for a TCP protocol listener."))},
	}
	listenerCreate = append(slices.Clone(listenerUpdate), fields{
		{name: "protocol", check: oneOf("HTTP", "HTTPS", "PROMETHEUS", "SCTP", "TCP", "TERMINATED_HTTPS", "UDP"), required: true},
		{name: "protocol_port", check: number(1, 65535), required: true},
		{name: "loadbalancer_id", check: id},
		{name: "project_id", check: text(36)},
		{name: "tenant_id", check: text(36)},
	}...)
)

// mostMilliseconds is the longest time-out: 24 days.
const mostMilliseconds = 24 * 24 * 3600 * 1000

// limits are the numbers of a listener that OVN has no use for, with their defaults: they are kept
// for who asks.
var limits = map[string]int{
	"connection_limit": -1, "timeout_client_data": 50000, "timeout_member_connect": 5000, "timeout_member_data": 50000, "timeout_tcp_inspect": 0,
}

type listenerRequest struct {
	Name          *string   `json:"name"`
	Description   *string   `json:"description"`
	AdminStateUp  *bool     `json:"admin_state_up"`
	Tags          *[]string `json:"tags"`
	Pool          *string   `json:"default_pool_id"`
	AllowedCIDRs  []string  `json:"allowed_cidrs"`
	Protocol      string    `json:"protocol"`
	Port          int       `json:"protocol_port"`
	Balancer      string    `json:"loadbalancer_id"`
	Limit         *int      `json:"connection_limit"`
	ClientData    *int      `json:"timeout_client_data"`
	MemberConnect *int      `json:"timeout_member_connect"`
	MemberData    *int      `json:"timeout_member_data"`
	TCPInspect    *int      `json:"timeout_tcp_inspect"`
}

func (in listenerRequest) limits() map[string]*int {
	return map[string]*int{
		"connection_limit": in.Limit, "timeout_client_data": in.ClientData, "timeout_member_connect": in.MemberConnect,
		"timeout_member_data": in.MemberData, "timeout_tcp_inspect": in.TCPInspect,
	}
}

// Listener is one in an answer.
type Listener struct {
	ID                 string            `json:"id"`
	Name               string            `json:"name"`
	Description        string            `json:"description"`
	ProvisioningStatus string            `json:"provisioning_status"`
	OperatingStatus    string            `json:"operating_status"`
	AdminStateUp       bool              `json:"admin_state_up"`
	Protocol           string            `json:"protocol"`
	Port               int               `json:"protocol_port"`
	ConnectionLimit    int               `json:"connection_limit"`
	TLSContainer       *string           `json:"default_tls_container_ref"`
	SNIContainers      []string          `json:"sni_container_refs"`
	Project            string            `json:"project_id"`
	Pool               *string           `json:"default_pool_id"`
	L7Policies         []ref             `json:"l7policies"`
	InsertHeaders      map[string]string `json:"insert_headers"`
	CreatedAt          *string           `json:"created_at"`
	UpdatedAt          *string           `json:"updated_at"`
	LoadBalancers      []ref             `json:"loadbalancers"`
	ClientData         int               `json:"timeout_client_data"`
	MemberConnect      int               `json:"timeout_member_connect"`
	MemberData         int               `json:"timeout_member_data"`
	TCPInspect         int               `json:"timeout_tcp_inspect"`
	Tags               []string          `json:"tags"`
	ClientCA           *string           `json:"client_ca_tls_container_ref"`
	ClientAuth         string            `json:"client_authentication"`
	ClientCRL          *string           `json:"client_crl_container_ref"`
	AllowedCIDRs       []string          `json:"allowed_cidrs"`
	TLSCiphers         *string           `json:"tls_ciphers"`
	TLSVersions        []string          `json:"tls_versions"`
	ALPNProtocols      []string          `json:"alpn_protocols"`
	HSTSMaxAge         *int              `json:"hsts_max_age"`
	HSTSSubdomains     bool              `json:"hsts_include_subdomains"`
	HSTSPreload        bool              `json:"hsts_preload"`
	Tenant             string            `json:"tenant_id"`
}

func viewListener(b *octavia.Balancer, f octavia.Found) Listener {
	l := f.Row.Listeners[f.Index]
	a, project := octavia.ListenerAttributes(f.Row, l.ID), b.Attributes().Project
	limit := func(name string) int {
		if n, ok := a.Limits[name]; ok {
			return n
		}
		return limits[name]
	}
	return Listener{
		ID: l.ID, Name: a.Name, Description: a.Description, ProvisioningStatus: active, OperatingStatus: operatingListener(f.Row, l), AdminStateUp: l.Enabled,
		Protocol: strings.ToUpper(f.Row.Protocol), Port: l.Port, ConnectionLimit: limit("connection_limit"), SNIContainers: []string{}, Project: project,
		Pool: orNull(l.Pool), L7Policies: []ref{}, InsertHeaders: map[string]string{}, CreatedAt: orNull(a.Created), UpdatedAt: orNull(a.Updated),
		LoadBalancers: []ref{{f.Row.Balancer}}, ClientData: limit("timeout_client_data"), MemberConnect: limit("timeout_member_connect"),
		MemberData: limit("timeout_member_data"), TCPInspect: limit("timeout_tcp_inspect"), Tags: orEmpty(a.Tags), ClientAuth: "NONE", Tenant: project,
	}
}

// provided are the protocols that OVN balances.
var provided = []string{"TCP", "UDP", "SCTP"}

func (a *API) createListener(q *request) (int, any, error) {
	var in listenerRequest
	if err := listenerBody.read(q.body, listenerCreate, &in); err != nil {
		return 0, nil, err
	}
	switch {
	case in.Balancer == "":
		return 0, nil, wrongValue("loadbalancer_id", "None", "Mandatory field missing.")
	case !slices.Contains(provided, in.Protocol):
		return 0, nil, unsupported("OVN provider does not support %s protocol", in.Protocol)
	case len(in.AllowedCIDRs) > 0:
		return 0, nil, unsupported("OVN provider does not support allowed_cidrs option")
	}
	var v Listener
	err := a.change(q, "create listener", func(northbound.Reader) (string, error) { return in.Balancer, nil }, func(tx *northbound.Tx, b *octavia.Balancer) error {
		if f, ok := b.Listener(q.id); ok && tx.Again {
			v = viewListener(b, f)
			return nil
		}
		r := b.Row(strings.ToLower(in.Protocol), q.row)
		if slices.ContainsFunc(r.Listeners, func(l rowform.Listener) bool { return l.Port == in.Port }) {
			return fail(http.StatusConflict, "Another Listener on this Load Balancer is already using protocol %s and protocol_port %d", in.Protocol, in.Port)
		}
		if err := fits(b, r, value(in.Pool), in.Protocol); err != nil {
			return err
		}
		r.Listeners = append(r.Listeners, rowform.Listener{ID: q.id, Port: in.Port, Pool: value(in.Pool), Enabled: in.AdminStateUp == nil || *in.AdminStateUp})
		f, _ := b.Listener(q.id)
		at := octavia.Attributes{Created: q.now}
		in.apply(&at)
		octavia.SetListenerAttributes(r, q.id, at)
		v = viewListener(b, f)
		return nil
	})
	return http.StatusCreated, map[string]Listener{"listener": v}, err
}

// fits tells whether a listener of a row may use a pool.
func fits(b *octavia.Balancer, r *rowform.Row, pool, protocol string) error {
	if pool == "" {
		return nil
	}
	f, ok := b.Pool(pool)
	switch {
	case !ok:
		return notFound("Pool", pool)
	case f.Row != r:
		return invalid("The pool protocol '%s' is invalid while the listener protocol is '%s'.", strings.ToUpper(f.Row.Protocol), protocol)
	}
	return nil
}

func (in listenerRequest) apply(a *octavia.Attributes) {
	set(&a.Name, in.Name)
	set(&a.Description, in.Description)
	set(&a.Tags, in.Tags)
	for name, n := range in.limits() {
		if n == nil {
			continue
		}
		if a.Limits == nil {
			a.Limits = map[string]int{}
		}
		a.Limits[name] = *n
	}
}

// ofChild finds the load balancer of a listener or pool of the request's path.
func ofChild(kind, title, id string) func(northbound.Reader) (string, error) {
	return func(from northbound.Reader) (string, error) {
		balancer, ok := octavia.BalancerOf(from, kind, id)
		if !ok {
			return "", notFound(title, id)
		}
		return balancer, nil
	}
}

// child is a view of a listener or pool that the caller may see.
func child[T any](a *API, q *request, load func(northbound.Reader) (string, error), f func(*octavia.Balancer) (T, error)) (T, error) {
	return view(a, q, func(from *northbound.Snapshot) (T, error) {
		var none T
		id, err := load(from)
		if err != nil {
			return none, err
		}
		b, err := q.balancer(from, id)
		if err != nil {
			return none, err
		}
		return f(b)
	})
}

func (a *API) showListener(q *request) (int, any, error) {
	id := q.PathValue("id")
	v, err := child(a, q, ofChild(octavia.KindListener, "Listener", id), func(b *octavia.Balancer) (Listener, error) {
		f, _ := b.Listener(id)
		return viewListener(b, f), nil
	})
	return answerOne(q, "listener", v, err)
}

func (a *API) updateListener(q *request) (int, any, error) {
	id := q.PathValue("id")
	var in listenerRequest
	if err := listenerBody.read(q.body, listenerUpdate, &in); err != nil {
		return 0, nil, err
	}
	if len(in.AllowedCIDRs) > 0 {
		return 0, nil, unsupported("OVN provider does not support allowed_cidrs option")
	}
	var v Listener
	err := a.change(q, "update listener", ofChild(octavia.KindListener, "Listener", id), func(_ *northbound.Tx, b *octavia.Balancer) error {
		f, _ := b.Listener(id)
		if err := fits(b, f.Row, value(in.Pool), strings.ToUpper(f.Row.Protocol)); err != nil {
			return err
		}
		l := &f.Row.Listeners[f.Index]
		set(&l.Pool, in.Pool)
		set(&l.Enabled, in.AdminStateUp)
		at := octavia.ListenerAttributes(f.Row, id)
		in.apply(&at)
		at.Updated = q.now
		octavia.SetListenerAttributes(f.Row, id, at)
		v = viewListener(b, f)
		return nil
	})
	return http.StatusOK, map[string]Listener{"listener": v}, err
}

func (a *API) deleteListener(q *request) (int, any, error) {
	id := q.PathValue("id")
	return a.remove(q, "delete listener", ofChild(octavia.KindListener, "Listener", id), func(_ *northbound.Tx, b *octavia.Balancer) error {
		f, _ := b.Listener(id)
		b.RemoveListener(f)
		return nil
	})
}

// remove is a change that takes something away. Where it is gone after a try without an answer, it
// was done.
func (a *API) remove(q *request, comment string, load func(northbound.Reader) (string, error), f func(*northbound.Tx, *octavia.Balancer) error) (int, any, error) {
	again := false
	err := a.change(q, comment, func(tx northbound.Reader) (string, error) {
		again = tx.(*northbound.Tx).Again
		return load(tx)
	}, f)
	if e, is := errors.AsType[*Error](err); is && e.Status == http.StatusNotFound && again {
		err = nil
	}
	return http.StatusNoContent, nil, err
}

func (a *API) listListeners(q *request) (int, any, error) {
	out := []Listener{}
	err := a.each(q, func(b *octavia.Balancer) {
		for _, r := range b.Rows {
			for i := range r.Listeners {
				out = append(out, viewListener(b, octavia.Found{Row: r, Index: i}))
			}
		}
	})
	if err != nil {
		return 0, nil, err
	}
	return answerList(q, "listeners", out, func(l Listener) map[string]string { return ofBalancer(l.LoadBalancers) })
}

// ofBalancer is what lists of listeners and pools can be asked for and do not show.
func ofBalancer(refs []ref) map[string]string {
	id := ""
	if len(refs) > 0 {
		id = refs[0].ID
	}
	return map[string]string{"loadbalancer_id": id, "load_balancer_id": id}
}

// damaged tells of a load balancer whose rows cannot be read, once for the same reason: lists leave it out.
func (a *API) damaged(id string, err error) {
	if err == nil {
		a.told.Delete(id)
		return
	}
	if before, told := a.told.Swap(id, err.Error()); !told || before != err.Error() {
		a.log.Warn("a load balancer cannot be read; its rows in OVN stay", "load_balancer", id, "error", err)
	}
}

// each calls f for the load balancers that the caller may see.
func (a *API) each(q *request, f func(*octavia.Balancer)) error {
	s, err := a.store.Current(q.Context())
	if err != nil {
		return err
	}
	for _, id := range octavia.IDs(s) {
		b, err := octavia.Load(s, id)
		if a.damaged(id, err); err == nil && q.caller.Reads(b.Attributes().Project) {
			f(b)
		}
	}
	return nil
}
