package neutron

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strconv"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// Config is what an API is told.
type Config struct {
	Store *northbound.Store
	Auth  identity.Authenticator
	Log   *slog.Logger
	// Networks has the projects that may use a network, by its ID. The others, but
	// administrators, do not see it.
	Networks map[string][]string
}

// API answers requests.
type API struct{ Config }

// New makes an API.
func New(c Config) *API {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &API{c}
}

// Network is one in an answer.
type Network struct {
	ID              string   `json:"id"`
	Name            string   `json:"name"`
	Project         string   `json:"project_id"`
	Tenant          string   `json:"tenant_id"`
	AdminStateUp    bool     `json:"admin_state_up"`
	Status          string   `json:"status"`
	Shared          bool     `json:"shared"`
	External        bool     `json:"router:external"`
	PhysicalNetwork *string  `json:"provider:physical_network,omitempty"`
	Subnets         []string `json:"subnets"`
	Tags            []string `json:"tags"`
}

// Subnet is one in an answer.
type Subnet struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Network     string   `json:"network_id"`
	Project     string   `json:"project_id"`
	Tenant      string   `json:"tenant_id"`
	IPVersion   int      `json:"ip_version"`
	CIDR        string   `json:"cidr"`
	Gateway     *string  `json:"gateway_ip"`
	DNS         []string `json:"dns_nameservers"`
	HostRoutes  []string `json:"host_routes"`
	Allocations []string `json:"allocation_pools"`
	Tags        []string `json:"tags"`
}

// Port is one in an answer.
type Port struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Network      string    `json:"network_id"`
	Project      string    `json:"project_id"`
	Tenant       string    `json:"tenant_id"`
	DeviceID     string    `json:"device_id"`
	DeviceOwner  string    `json:"device_owner"`
	AdminStateUp bool      `json:"admin_state_up"`
	Status       string    `json:"status"`
	FixedIPs     []FixedIP `json:"fixed_ips"`
	Tags         []string  `json:"tags"`
}

// FixedIP is an address of a port.
type FixedIP struct {
	Subnet  string `json:"subnet_id"`
	Address string `json:"ip_address"`
}

// Register has a mux answer below each base, such as /v2.0.
func (a *API) Register(mux *http.ServeMux, bases ...string) {
	for _, base := range bases {
		for _, c := range []struct {
			one, many string
			list      func(view) []object
		}{{"network", "networks", view.networks}, {"subnet", "subnets", view.subnets}, {"port", "ports", view.ports}} {
			mux.HandleFunc("GET "+base+"/"+c.many, func(w http.ResponseWriter, r *http.Request) { a.list(w, r, c.many, c.list) })
			mux.HandleFunc("GET "+base+"/"+c.many+"/{id}", func(w http.ResponseWriter, r *http.Request) { a.show(w, r, c.one, c.list) })
		}
		mux.HandleFunc("GET "+base+"/extensions", func(w http.ResponseWriter, r *http.Request) {
			a.list(w, r, "extensions", func(view) []object { return nil })
		})
		mux.HandleFunc("GET "+base+"/extensions/{id}", func(w http.ResponseWriter, r *http.Request) {
			a.show(w, r, "extension", func(view) []object { return nil })
		})
	}
}

// object is a network, subnet or port with what a list can be asked for.
type object struct {
	attributes map[string]string
	body       any
}

// view is what a caller sees of a snapshot.
type view struct {
	s        *northbound.Snapshot
	caller   identity.Caller
	projects map[string][]string
}

func (v view) sees(n network.Network) bool {
	return v.caller.Admin || slices.Contains(v.projects[n.ID], v.caller.Project)
}

// owner is the project that a network is said to be of: the first that may use it.
func (v view) owner(n network.Network) string {
	if list := v.projects[n.ID]; len(list) > 0 {
		return list[0]
	}
	return ""
}

func (v view) each(f func(network.Network)) {
	for _, n := range network.All(v.s) {
		if v.sees(n) {
			f(n)
		}
	}
}

func (v view) networks() (out []object) {
	v.each(func(n network.Network) {
		o := Network{
			ID: n.ID, Name: n.Name, Project: v.owner(n), Tenant: v.owner(n), AdminStateUp: true, Status: "ACTIVE",
			Shared: len(v.projects[n.ID]) > 1, Subnets: []string{}, Tags: []string{},
		}
		if n.Physical != "" && v.caller.Admin {
			o.PhysicalNetwork = &n.Physical
		}
		for _, s := range network.Subnets(v.s, n) {
			o.Subnets = append(o.Subnets, s.ID)
		}
		out = append(out, object{map[string]string{"id": n.ID, "name": n.Name, "project_id": o.Project, "tenant_id": o.Project}, o})
	})
	return out
}

func (v view) subnets() (out []object) {
	v.each(func(n network.Network) {
		for _, s := range network.Subnets(v.s, n) {
			o := Subnet{
				ID: s.ID, Name: subnetName(s), Network: n.ID, Project: v.owner(n), Tenant: v.owner(n), IPVersion: 6, CIDR: s.CIDR.String(),
				DNS: []string{}, HostRoutes: []string{}, Allocations: []string{}, Tags: []string{},
			}
			if s.CIDR.Addr().Is4() {
				o.IPVersion = 4
			}
			if s.Gateway.IsValid() {
				text := s.Gateway.String()
				o.Gateway = &text
			}
			out = append(out, object{map[string]string{
				"id": o.ID, "name": o.Name, "network_id": o.Network, "project_id": o.Project, "tenant_id": o.Project, "cidr": o.CIDR,
				"ip_version": strconv.Itoa(o.IPVersion),
			}, o})
		}
	})
	return out
}

// subnetName is how people call a subnet that has no name in Northbound: by its network and
// family.
func subnetName(s network.Subnet) string {
	if s.CIDR.Addr().Is4() {
		return s.Network.Name + "-4"
	}
	return s.Network.Name + "-6"
}

func (v view) ports() (out []object) {
	v.each(func(n network.Network) {
		ls, ok := northbound.Get[*nb.LogicalSwitch](v.s, n.Row)
		if !ok {
			return
		}
		subnets := network.Subnets(v.s, n)
		for _, id := range ls.Ports {
			if lsp, ok := northbound.Get[*nb.LogicalSwitchPort](v.s, id); ok {
				out = append(out, v.port(n, subnets, lsp))
			}
		}
	})
	return out
}

func (v view) port(n network.Network, subnets []network.Subnet, lsp *nb.LogicalSwitchPort) object {
	ids := lsp.ExternalIDs
	o := Port{
		ID: lsp.Name, Name: ids["neutron:port_name"], Network: n.ID, Project: ids["neutron:project_id"], DeviceID: ids["neutron:device_id"],
		DeviceOwner: ids["neutron:device_owner"], AdminStateUp: lsp.Enabled == nil || *lsp.Enabled, Status: "DOWN", FixedIPs: []FixedIP{}, Tags: []string{},
	}
	o.Tenant = o.Project
	if lsp.Up != nil && *lsp.Up {
		o.Status = "ACTIVE"
	}
	for _, a := range network.AddressesOf(lsp) {
		if i := slices.IndexFunc(subnets, func(s network.Subnet) bool { return s.CIDR.Contains(a) }); i >= 0 {
			o.FixedIPs = append(o.FixedIPs, FixedIP{subnets[i].ID, a.String()})
		}
	}
	return object{map[string]string{
		"id": o.ID, "name": o.Name, "network_id": o.Network, "project_id": o.Project, "tenant_id": o.Project, "device_id": o.DeviceID,
		"device_owner": o.DeviceOwner,
	}, o}
}

// view authenticates a request. Without one it has answered.
func (a *API) view(w http.ResponseWriter, r *http.Request) (v view, ok bool) {
	caller, err := a.Auth.Authenticate(r)
	if errors.Is(err, identity.ErrUnknownToken) {
		identity.Refuse(w)
		return v, false
	}
	var s *northbound.Snapshot
	if err == nil {
		s, err = a.Store.Current(r.Context())
	}
	if err != nil {
		w.Header().Set("Retry-After", "1")
		a.fail(w, http.StatusServiceUnavailable, "ServiceUnavailable", "The service is unavailable.")
		return v, false
	}
	return view{s, caller, a.Networks}, true
}

func (a *API) list(w http.ResponseWriter, r *http.Request, name string, list func(view) []object) {
	v, ok := a.view(w, r)
	if !ok {
		return
	}
	out := []any{}
	for _, o := range list(v) {
		if o.matches(r.URL.Query()) {
			out = append(out, o.body)
		}
	}
	a.answer(w, http.StatusOK, map[string]any{name: out})
}

// matches tells whether an object has the values that a query asks for. What it does not know is
// no reason to leave one out, as with Neutron.
func (o object) matches(query map[string][]string) bool {
	for key, values := range query {
		if have, known := o.attributes[key]; known && !slices.Contains(values, have) {
			return false
		}
	}
	return true
}

func (a *API) show(w http.ResponseWriter, r *http.Request, name string, list func(view) []object) {
	v, ok := a.view(w, r)
	if !ok {
		return
	}
	id := r.PathValue("id")
	for _, o := range list(v) {
		if o.attributes["id"] == id {
			a.answer(w, http.StatusOK, map[string]any{name: o.body})
			return
		}
	}
	kind := map[string]string{"network": "Network", "subnet": "Subnet", "port": "Port", "extension": "Extension"}[name]
	a.fail(w, http.StatusNotFound, kind+"NotFound", kind+" "+id+" could not be found.")
}

func (a *API) fail(w http.ResponseWriter, status int, kind, text string) {
	a.answer(w, status, map[string]any{"NeutronError": map[string]string{"type": kind, "message": text, "detail": ""}})
}

func (a *API) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.Log.Debug("the client is gone", "error", err)
	}
}
