package api

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/rest"
)

// Config is what an API is told.
type Config struct {
	Store *northbound.Store
	Auth  identity.Authenticator
	Log   *slog.Logger
	// Networks has the projects that may use a network, by its ID: Northbound does not know whose
	// a network is. Administrators may use each.
	Networks map[string][]string
	// Ports makes ports of VIPs at Neutron; nil: a VIP in a network that Neutron wrote needs a port that is
	// there.
	Ports VIPPorts
	// Now and NewID are time.Now and northbound.NewUUID, if not set.
	Now   func() time.Time
	NewID func() string
}

// API answers requests.
type API struct {
	store    *northbound.Store
	auth     identity.Authenticator
	log      *slog.Logger
	networks map[string][]string
	ports    VIPPorts
	now      func() time.Time
	newID    func() string
	// told has by its ID what was said of a load balancer that cannot be read.
	told sync.Map
}

// mayUse tells whether the caller may place a VIP or a member in a network.
func (a *API) mayUse(q *request, n network.Network) bool {
	return q.caller.Admin || slices.Contains(a.networks[n.ID], q.caller.Project)
}

// subnet is one that the caller may use. Another one is as if it were not there.
func (a *API) subnet(from northbound.Reader, q *request, id string) (network.Subnet, error) {
	s, ok := network.FindSubnet(from, id)
	if !ok || !a.mayUse(q, s.Network) {
		return network.Subnet{}, noSuch("Subnet", id)
	}
	return s, named(from, s.Network)
}

// named refuses a network whose switch has no name of its own: load balancers are associated by the names.
func named(from northbound.Reader, n network.Network) error {
	if n.Switch == "" || len(northbound.Find(from, northbound.SwitchByName, n.Switch)) != 1 {
		return invalid("Network %s has a switch whose name %q is not its own in OVN.", n.ID, n.Switch)
	}
	return nil
}

// New makes an API.
func New(c Config) *API {
	a := &API{store: c.Store, auth: c.Auth, log: c.Log, networks: c.Networks, ports: c.Ports, now: c.Now, newID: c.NewID}
	if a.log == nil {
		a.log = slog.New(slog.DiscardHandler)
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.newID == nil {
		a.newID = northbound.NewUUID
	}
	return a
}

// request is one that is authenticated.
type request struct {
	*http.Request
	caller identity.Caller
	body   []byte
	// id and uuid are those of what the request makes, in case it makes something; row is the
	// UUID of a Load_Balancer row that it may need. They are the same in each try.
	id, row, port string
	now           string
	// made are the ports that Neutron has made for it.
	made madePorts
}

// handler answers a request: with a body that is nil for none.
type handler func(*request) (status int, body any, err error)

// Routes are the paths that the API answers, below the collection's base path.
func (a *API) Routes() map[string]http.Handler {
	routes := map[string]http.Handler{}
	for pattern, h := range map[string]handler{
		"POST /loadbalancers": a.createBalancer, "GET /loadbalancers": a.listBalancers,
		"GET /loadbalancers/{id}/{rest...}": a.belowBalancer,
		"GET /loadbalancers/{id}":           a.showBalancer, "PUT /loadbalancers/{id}": a.updateBalancer, "DELETE /loadbalancers/{id}": a.deleteBalancer,
		"POST /listeners": a.createListener, "GET /listeners": a.listListeners,
		"GET /listeners/{id}": a.showListener, "PUT /listeners/{id}": a.updateListener, "DELETE /listeners/{id}": a.deleteListener,
		"POST /pools": a.createPool, "GET /pools": a.listPools,
		"GET /pools/{id}": a.showPool, "PUT /pools/{id}": a.updatePool, "DELETE /pools/{id}": a.deletePool,
		"POST /pools/{pool}/members": a.createMember, "GET /pools/{pool}/members": a.listMembers,
		"GET /pools/{pool}/members/{id}": a.showMember, "PUT /pools/{pool}/members/{id}": a.updateMember,
		"DELETE /pools/{pool}/members/{id}": a.deleteMember,
	} {
		routes[pattern] = a.serve(h)
	}
	return routes
}

// Register has a mux answer the API's paths below each base, such as /v2/lbaas.
func (a *API) Register(mux *http.ServeMux, bases ...string) {
	paths := map[string]map[string]http.Handler{}
	for pattern, h := range a.Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		if paths[path] == nil {
			paths[path] = map[string]http.Handler{}
		}
		paths[path][method] = h
	}
	for path, methods := range paths {
		for _, base := range bases {
			mux.Handle(base+path, a.byMethod(methods))
		}
	}
}

// Unknown answers a path that no API has.
func (a *API) Unknown() http.Handler {
	return a.serve(func(q *request) (int, any, error) {
		if q.Method != http.MethodGet && q.Method != http.MethodHead {
			return 0, nil, noMethod(http.MethodGet)
		}
		return 0, nil, errNoPath
	})
}

// byMethod answers the methods of a path. A collection asked to change or delete an object lacks its ID.
func (a *API) byMethod(methods map[string]http.Handler) http.Handler {
	allowed := sortedKeys(methods)
	other := a.serve(func(q *request) (int, any, error) {
		if slices.Contains(allowed, http.MethodPost) && (q.Method == http.MethodPut || q.Method == http.MethodDelete) {
			return 0, nil, fail(http.StatusBadRequest, `Missing argument: "id"`)
		}
		return 0, nil, noMethod(allowed...)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch h, has := methods[r.Method]; {
		case has:
			h.ServeHTTP(w, r)
		case r.Method == http.MethodHead && methods[http.MethodGet] != nil:
			methods[http.MethodGet].ServeHTTP(w, r)
		case r.Method == http.MethodOptions:
			w.WriteHeader(http.StatusOK)
		default:
			other.ServeHTTP(w, r)
		}
	})
}

func (a *API) serve(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, body, err := a.handle(h, r)
		switch {
		case err != nil:
			a.answerError(w, r, err)
		case body == nil:
			w.WriteHeader(status)
		default:
			a.answer(w, status, body)
		}
	})
}

func (a *API) handle(h handler, r *http.Request) (int, any, error) {
	caller, err := a.auth.Authenticate(r)
	if err != nil {
		return 0, nil, err
	}
	if !rest.AcceptsJSON(r) {
		return 0, nil, errNotAcceptable
	}
	q := &request{Request: r, caller: caller, id: a.newID(), row: a.newID(), port: a.newID(), now: a.now().UTC().Format(timeFormat)}
	if q.body, err = io.ReadAll(r.Body); err != nil {
		return 0, nil, fail(http.StatusBadRequest, "Request is not in valid JSON format")
	}
	if len(q.body) > 0 && !rest.SendsJSON(r) {
		return 0, nil, fail(http.StatusUnsupportedMediaType, "Unknown mimetype: %s", r.Header.Get("Content-Type"))
	}
	return h(q)
}

// timeFormat is Octavia's: without a zone.
const timeFormat = "2006-01-02T15:04:05"

// change commits what f does to a load balancer.
func (a *API) change(q *request, comment string, load func(northbound.Reader) (string, error), f func(*northbound.Tx, *octavia.Balancer) error) error {
	return a.store.Commit(q.Context(), comment, func(tx *northbound.Tx) error {
		id, err := load(tx)
		if err != nil {
			return err
		}
		b, err := octavia.Load(tx, id)
		if errors.Is(err, octavia.ErrNotFound) {
			return notFound("Load Balancer", id)
		}
		if err != nil {
			return err
		}
		if !q.caller.Writes(b.Attributes().Project) {
			return errPolicy
		}
		if err := f(tx, b); err != nil {
			return err
		}
		b.Save()
		return nil
	})
}

// view reads from a snapshot that has all that was committed before the request: a client behind a
// balancer that changes something at one replica and reads at another sees its change. While the
// database cannot be reached it reads what was there last; that an object is not there it does not say
// then.
func view[T any](a *API, q *request, find func(*northbound.Snapshot) (T, error)) (T, error) {
	var none T
	s, err := a.store.Current(q.Context())
	if err != nil {
		return none, err
	}
	if v, err := find(s); err == nil {
		return v, nil
	}
	if s, err = a.store.Fresh(q.Context()); err != nil {
		return none, err
	}
	return find(s)
}
