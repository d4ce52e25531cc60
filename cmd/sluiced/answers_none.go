package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// handleList attaches a question to which a node without a role has an answer, too:
// that there is nothing. Whoever asks all nodes of a cloud has no errors to sort out.
func handleList[Req, Resp any](s *admin.Server, d *daemon, e admin.Endpoint[Req, Resp], none Resp, f func(context.Context, *node, Req) (Resp, error)) {
	admin.Handle(s, e, func(ctx context.Context, q Req) (Resp, error) {
		n, err := d.present()
		switch {
		case err != nil:
			var nothing Resp
			return nothing, err
		case n == nil:
			return none, nil
		}
		return f(ctx, n, q)
	})
}

// present is the node, nil where it is known that there is to be none, or why there is
// none.
func (d *daemon) present() (*node, error) {
	n, err := d.running()
	if err != nil && d.hasNoRole() {
		return nil, nil
	}
	return n, err
}

// Answers of a node without a role.
var (
	noUnderlay = status.Underlay{Announcements: []status.UnderlayAnnouncement{}, Routes: []status.UnderlayRoute{}}
	noDiff     = status.Diff{Changes: []status.Change{}}
)

func (d *daemon) noBGP() status.BGP {
	return status.BGP{ASN: d.cfg.BGP.ASN, Neighbors: []status.Neighbor{}}
}

// running is the node, or why there is none.
func (d *daemon) running() (*node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.node == nil {
		why, kind := d.idleLocked()
		return nil, fmt.Errorf("%w: %s", kind, why)
	}
	return d.node, nil
}

// idleLocked is why there is no node. d.mu is held.
func (d *daemon) idleLocked() (why string, kind error) {
	switch {
	case d.latest.reason == "":
		return "what this node is to do is not known before OVN's databases have been read; what an earlier start left goes on forwarding", admin.ErrUnavailable
	case d.latest.gateway:
		return "this node's data plane is being started, and 'sluicectl status' tells what is in the way; what an earlier start left goes on forwarding", admin.ErrUnavailable
	}
	return "this node forwards nothing: " + d.latest.reason, admin.ErrNotFound
}

// idleStep is the end of an explanation where there is no node, with the hint of one
// that is to have none.
func (d *daemon) idleStep(hint string) status.Step {
	d.mu.Lock()
	defer d.mu.Unlock()
	why, kind := d.idleLocked()
	s := status.Step{Layer: status.LayerDataplane, Object: "node", Detail: why}
	if errors.Is(kind, admin.ErrNotFound) {
		s.Hint = hint
	}
	return s
}
