package role

import (
	"errors"
	"fmt"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/gateway"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Running is the gateway, or why there is none.
func (r *Role) Running() (*gateway.Gateway, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gateway == nil {
		why, kind := r.idle()
		return nil, fmt.Errorf("%w: %s", kind, why)
	}
	return r.gateway, nil
}

// Present is the gateway, nil where it is known that there is to be none, or why there is none.
func (r *Role) Present() (*gateway.Gateway, error) {
	g, err := r.Running()
	if err != nil && r.None() {
		return nil, nil
	}
	return g, err
}

// None tells whether it is known that the node is to forward nothing.
func (r *Role) None() bool {
	f := r.Facts()
	return !f.Gateway && f.Reason != ""
}

// idle is why there is no gateway. r.mu is held.
func (r *Role) idle() (why string, kind error) {
	switch {
	case r.latest.Reason == "":
		return "the role of this node is not known until OVN's databases are read; programs of an earlier start keep forwarding", admin.ErrUnavailable
	case r.latest.Gateway:
		return "this node's data plane is starting, and 'sluicectl status' shows what it waits for; programs of an earlier start keep forwarding", admin.ErrUnavailable
	}
	return "this node forwards nothing: " + r.latest.Reason, admin.ErrNotFound
}

// IdleStep is the end of an explanation where there is no gateway, with the hint of a node
// that is to have none.
func (r *Role) IdleStep(hint string) status.Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	why, kind := r.idle()
	s := status.Step{Layer: status.LayerDataplane, Object: "node", Detail: why}
	if errors.Is(kind, admin.ErrNotFound) {
		s.Hint = hint
	}
	return s
}
