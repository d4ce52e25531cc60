package neutron

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/rest"
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
	MACAddress   string    `json:"mac_address"`
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
		for _, c := range collections {
			mux.HandleFunc(base+"/"+c.many, a.reading(func(w http.ResponseWriter, r *http.Request, v view) { a.list(w, r, c, v) }))
			mux.HandleFunc(base+"/"+c.many+"/{id}", a.reading(func(w http.ResponseWriter, r *http.Request, v view) { a.show(w, r, c, v) }))
		}
		mux.HandleFunc(base+"/", a.reading(func(w http.ResponseWriter, _ *http.Request, _ view) {
			a.fail(w, &failure{http.StatusNotFound, "HTTPNotFound", "The resource could not be found."})
		}))
	}
}

// collection is a kind of objects.
type collection struct {
	one, many, title string
	list             func(view) []object
	// none is an object with all attributes that lists can be asked for, and sorted by.
	none object
}

var collections = []collection{
	{"network", "networks", "Network", view.networks, networkObject(Network{})},
	{"subnet", "subnets", "Subnet", view.subnets, subnetObject(Subnet{})},
	{"port", "ports", "Port", view.ports, portObject(Port{})},
	{"extension", "extensions", "Extension", func(view) []object { return nil }, object{}},
}

// malformed is what Neutron says to a method or media type that it does not take.
const malformed = "The server could not comply with the request since it is either malformed or otherwise incorrect."

// reading answers those who may ask, and ask for JSON. Nothing can be written.
func (a *API) reading(h func(http.ResponseWriter, *http.Request, view)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v, ok := a.view(w, r)
		switch {
		case !ok:
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			a.fail(w, &failure{http.StatusMethodNotAllowed, "HTTPMethodNotAllowed", malformed})
		case !rest.AcceptsJSON(r):
			a.fail(w, &failure{http.StatusNotAcceptable, "HTTPNotAcceptable", malformed})
		default:
			h(w, r, v)
		}
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
		out = append(out, networkObject(o))
	})
	return out
}

func networkObject(o Network) object {
	return object{map[string]string{
		"id": o.ID, "name": o.Name, "project_id": o.Project, "tenant_id": o.Project, "status": o.Status, "admin_state_up": strconv.FormatBool(o.AdminStateUp),
		"shared": strconv.FormatBool(o.Shared), "router:external": strconv.FormatBool(o.External),
	}, o}
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
			out = append(out, subnetObject(o))
		}
	})
	return out
}

func subnetObject(o Subnet) object {
	gateway := ""
	if o.Gateway != nil {
		gateway = *o.Gateway
	}
	return object{map[string]string{
		"id": o.ID, "name": o.Name, "network_id": o.Network, "project_id": o.Project, "tenant_id": o.Project, "cidr": o.CIDR,
		"ip_version": strconv.Itoa(o.IPVersion), "gateway_ip": gateway,
	}, o}
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
			// Of a port that nobody's project is known of, administrators alone are told.
			if lsp, ok := northbound.Get[*nb.LogicalSwitchPort](v.s, id); ok && v.caller.Reads(network.NewPort(lsp).Project) {
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
	for _, word := range strings.Fields(strings.Join(lsp.Addresses, " ")) {
		if _, err := net.ParseMAC(word); err == nil {
			o.MACAddress = word
			break
		}
	}
	if lsp.Up != nil && *lsp.Up {
		o.Status = "ACTIVE"
	}
	for _, a := range network.AddressesOf(lsp) {
		if i := slices.IndexFunc(subnets, func(s network.Subnet) bool { return s.CIDR.Contains(a) }); i >= 0 {
			o.FixedIPs = append(o.FixedIPs, FixedIP{subnets[i].ID, a.String()})
		}
	}
	return portObject(o)
}

func portObject(o Port) object {
	return object{map[string]string{
		"id": o.ID, "name": o.Name, "network_id": o.Network, "project_id": o.Project, "tenant_id": o.Project, "device_id": o.DeviceID,
		"device_owner": o.DeviceOwner, "status": o.Status, "admin_state_up": strconv.FormatBool(o.AdminStateUp),
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
		a.fail(w, &failure{http.StatusServiceUnavailable, "ServiceUnavailable", "The service is unavailable."})
		return v, false
	}
	return view{s, caller, a.Networks}, true
}

func (a *API) list(w http.ResponseWriter, r *http.Request, c collection, v view) {
	found, links, err := page(r, c.title, c.list(v), c.none.attributes)
	if err != nil {
		a.fail(w, err)
		return
	}
	out := make([]any, len(found))
	for i, o := range found {
		out[i] = o.projected(r.URL.Query())
	}
	body := map[string]any{c.many: out}
	if links != nil {
		body[c.many+"_links"] = links
	}
	a.answer(w, http.StatusOK, body)
}

// matches tells whether an object has the values that a query asks for. What it does not know is
// no reason to leave one out, as with Neutron.
func (o object) matches(query map[string][]string) bool {
	for key, values := range query {
		have, known := o.attributes[key]
		if known && !slices.ContainsFunc(values, func(v string) bool { return v == have || isBoolean(have) && strings.EqualFold(v, have) }) {
			return false
		}
	}
	return true
}

// isBoolean tells whether an attribute is true or false: a query may spell it in capitals.
func isBoolean(text string) bool { return text == "true" || text == "false" }

func (a *API) show(w http.ResponseWriter, r *http.Request, c collection, v view) {
	id := r.PathValue("id")
	for _, o := range c.list(v) {
		if o.attributes["id"] == id {
			a.answer(w, http.StatusOK, map[string]any{c.one: o.projected(r.URL.Query())})
			return
		}
	}
	a.fail(w, notFound(c.title, id))
}

// fail answers with an error, which is a failure.
func (a *API) fail(w http.ResponseWriter, err error) {
	f, known := errors.AsType[*failure](err)
	if !known {
		f = &failure{http.StatusInternalServerError, "HTTPInternalServerError", err.Error()}
	}
	a.answer(w, f.status, map[string]any{"NeutronError": map[string]string{"type": f.kind, "message": f.text, "detail": ""}})
}

func (a *API) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.Log.Debug("the client closed its connection", "error", err)
	}
}
