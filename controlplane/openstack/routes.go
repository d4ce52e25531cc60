package openstack

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/neutron"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/api"
)

// Config is what the APIs are told.
type Config struct {
	Store *northbound.Store
	Auth  identity.Authenticator
	Log   *slog.Logger
	// Networks has the projects that may use a network, by its ID.
	Networks map[string][]string
	// Ports are those of the load balancers' API.
	Ports api.VIPPorts
	// Now and NewID are those of the load balancers' API.
	Now   func() time.Time
	NewID func() string
}

// Routes answers every path.
func Routes(c Config) http.Handler {
	mux := http.NewServeMux()
	balancers := api.New(api.Config{Store: c.Store, Auth: c.Auth, Networks: c.Networks, Ports: c.Ports, Log: c.Log, Now: c.Now, NewID: c.NewID})
	names := neutron.New(neutron.Config{Store: c.Store, Auth: c.Auth, Networks: c.Networks, Log: c.Log})
	for _, root := range []string{"", "/load-balancer"} {
		balancers.Register(mux, root+"/v2/lbaas", root+"/v2.0/lbaas", root+"/v2", root+"/v2.0")
	}
	for _, base := range []string{"/v2/lbaas/", "/v2.0/lbaas/", "/load-balancer/v2/", "/load-balancer/v2.0/"} {
		mux.Handle(base, balancers.Unknown())
	}
	for _, root := range []string{"", "/network"} {
		names.Register(mux, root+"/v2", root+"/v2.0")
	}
	for root, list := range map[string]func(string) []apiVersion{"": balancerVersions, "/load-balancer": balancerVersions, "/network": networkVersions} {
		for _, path := range []string{"", "/v2", "/v2.0"} {
			mux.HandleFunc("GET "+cmp.Or(root+path, "/{$}"), func(w http.ResponseWriter, r *http.Request) { discover(w, r, root, list) })
		}
	}
	mux.HandleFunc("GET /healthcheck", func(w http.ResponseWriter, r *http.Request) { healthcheck(w, r, c.Store) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { unknown(w, r, c.Auth) })
	return trimmed(mux)
}

// trimmed has a path answered as without a slash or .json at its end. Those of discovery are the same with
// and without a slash.
func trimmed(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := strings.TrimSuffix(strings.TrimSuffix(r.URL.Path, ".json"), "/")
		if path == "" || path == r.URL.Path {
			h.ServeHTTP(w, r)
			return
		}
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = path, ""
		h.ServeHTTP(w, r)
	})
}

// unknown answers a path outside the APIs, to those who are known.
func unknown(w http.ResponseWriter, r *http.Request, auth identity.Authenticator) {
	if _, err := auth.Authenticate(r); errors.Is(err, identity.ErrUnknownToken) {
		identity.Refuse(w)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	_, _ = io.WriteString(w, `{"code": 404, "title": "Not Found", "description": null}`) // a client that has gone needs no answer
}

// healthcheck tells a balancer in front of the replicas whether this one follows the database, in the form of
// oslo.middleware.
func healthcheck(w http.ResponseWriter, r *http.Request, store *northbound.Store) {
	status, why := http.StatusOK, []string{}
	if !store.Status().InSync {
		status, why = http.StatusServiceUnavailable, []string{"the Northbound database is not in sync"}
	}
	if !strings.Contains(r.Header.Get("Accept"), "application/json") {
		w.Header().Set("Content-Type", "text/plain; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, strings.Join(why, "\n")) // a client that has gone needs no answer
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"detailed": false, "reasons": why}) // as above
}
