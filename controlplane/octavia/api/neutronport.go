package api

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/neutron"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// VIPPorts makes and deletes ports of VIPs in networks that Neutron wrote: a *neutron.Client.
//
// Ports are made before a load balancer is committed and deleted after it was deleted, or was refused for
// certain. What is left over, since somebody was killed in between, an octavia.Sweeper deletes.
type VIPPorts interface {
	CreateVIPPort(context.Context, neutron.VIPPort) (neutron.MadePort, error)
	DeletePort(ctx context.Context, id string) error
}

// dropTimeout bounds the delete of a port that is needed no more; the client does not wait for longer.
const dropTimeout = 10 * time.Second

// makePorts makes the ports of VIPs in networks that Neutron wrote, under their names in q.made. What is wrong
// with a request the transaction will say: nothing is made for it.
func (a *API) makePorts(q *request, in balancerRequest) error {
	if a.ports == nil {
		return nil
	}
	from, err := a.store.Current(q.Context())
	if err != nil {
		return err
	}
	for _, p := range a.wantedPorts(from, q, in) {
		made, err := a.ports.CreateVIPPort(q.Context(), p)
		if err != nil {
			a.dropPorts(q, q.made.ids())
			return a.neutronError(q, err)
		}
		if q.made == nil {
			q.made = madePorts{}
		}
		q.made[p.Name] = made
	}
	return nil
}

// wantedPorts are the ports to be made; none if the transaction will refuse the request.
func (a *API) wantedPorts(from northbound.Reader, q *request, in balancerRequest) (out []neutron.VIPPort) {
	seen := map[string]bool{}
	want := func(s network.Subnet, asked, name string) bool {
		ip, err := netip.ParseAddr(asked)
		if seen[s.ID] || !s.Network.Neutron || asked != "" && err != nil {
			return false
		}
		seen[s.ID] = true
		out = append(out, neutron.VIPPort{Name: name, Balancer: q.id, Project: in.Project, Network: s.Network.ID, Subnet: s.ID, Address: ip})
		return len(out) == 1 || s.Network.ID == out[0].Network
	}
	if in.VIPPort == "" {
		if s, err := a.vipSubnet(from, q, in); err != nil || !want(s, in.VIPAddress, octavia.PortName(q.id)) {
			return nil
		}
	}
	for i, v := range in.Additional {
		if s, err := a.subnet(from, q, v.Subnet); err != nil || !want(s, v.Address, octavia.AdditionalPortName(q.id, i)) {
			return nil
		}
	}
	return out
}

// neutronError is what a client is told of an error of Neutron's. What a user can do about is told in Neutron's
// words, as Octavia does.
func (a *API) neutronError(q *request, err error) error {
	r, is := errors.AsType[*neutron.Refusal](err)
	if is && r.Text != "" && (r.Status == http.StatusBadRequest || r.Status == http.StatusNotFound || r.Status == http.StatusConflict) {
		return refused("%s", r.Text)
	}
	a.log.Warn("no port was created at Neutron", "load_balancer", q.id, "error", err)
	if is && (r.Status == http.StatusUnauthorized || r.Status == http.StatusForbidden) {
		return refused("Neutron does not let the controller create a port.")
	}
	return fail(http.StatusServiceUnavailable, "Neutron has created no port for the VIP; no load balancer was created")
}

// settlePorts deletes the ports of a load balancer that was not committed. If that is not known, they stay.
func (a *API) settlePorts(q *request, err error) {
	if err != nil && !errors.Is(err, ovsdb.ErrOutcomeUnknown) {
		a.dropPorts(q, q.made.ids())
	}
}

// dropPorts deletes ports at Neutron, also when the client is gone.
func (a *API) dropPorts(q *request, ids []string) {
	if len(ids) == 0 {
		return
	}
	if a.ports == nil {
		a.log.Warn("ports are left at Neutron: neutron.url is not configured any more", "ports", ids)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.Context()), dropTimeout)
	defer cancel()
	for _, id := range ids {
		if err := a.ports.DeletePort(ctx, id); err != nil {
			a.log.Warn("a port cannot be deleted at Neutron; a later sweep deletes it", "port", id, "error", err)
		}
	}
}

// madePorts are ports that Neutron has made for a request, by name.
type madePorts map[string]neutron.MadePort

// ids are theirs, in the order of their names.
func (m madePorts) ids() (out []string) {
	for _, name := range sortedKeys(m) {
		out = append(out, m[name].ID)
	}
	return out
}
