package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"

	api "github.com/osrg/gobgp/v3/api"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// unicastOut is what this node announces as plain unicast. GoBGP.outMu guards it.
type unicastOut struct {
	// wanted says who wants a prefix: several may.
	wanted map[netip.Prefix]unicastUse
	sent   map[netip.Prefix]unicastForm
}

// unicastUse is what a prefix is announced for.
type unicastUse uint8

const (
	// useUnderlay: the node's own part in the underlay.
	useUnderlay unicastUse = 1 << iota
	// useExposed: an address of the default VRF.
	useExposed
)

// unicastForm is what a prefix was sent with.
type unicastForm struct{ shutdown bool }

func newUnicastOut() unicastOut {
	return unicastOut{wanted: map[netip.Prefix]unicastUse{}, sent: map[netip.Prefix]unicastForm{}}
}

// setUnicast changes what is wanted for a use and tells the BGP server; without one,
// start does. What failed is tried again by tick.
func (s *GoBGP) setUnicast(ctx context.Context, use unicastUse, add, remove []netip.Prefix) map[netip.Prefix]error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	var gone []netip.Prefix
	for _, p := range remove {
		if s.unicastOut.wanted[p] &^= use; s.unicastOut.wanted[p] == 0 {
			delete(s.unicastOut.wanted, p)
			gone = append(gone, p)
		}
	}
	for _, p := range add {
		s.unicastOut.wanted[p] |= use
	}
	s.ownUnicast(add, gone)
	return s.sendUnicastLocked(ctx)
}

// unicastFormLocked: what is only exposed has another way when the node is drained,
// its own addresses have none.
func (s *GoBGP) unicastFormLocked(use unicastUse) unicastForm {
	return unicastForm{shutdown: s.out.node.shutdown && use == useExposed}
}

// sendUnicastLocked makes what is sent what is wanted, withdrawals first.
func (s *GoBGP) sendUnicastLocked(ctx context.Context) map[netip.Prefix]error {
	failed := map[netip.Prefix]error{}
	if s.server == nil {
		return failed
	}
	o := s.unicastOut
	for p := range o.sent {
		if _, wanted := o.wanted[p]; wanted {
			continue
		}
		if err := s.sendPrefix(ctx, p, unicastForm{}, true); err != nil {
			failed[p] = fmt.Errorf("withdraw %s: %w", p, err)
			continue
		}
		delete(o.sent, p)
	}
	for p, use := range o.wanted {
		form := s.unicastFormLocked(use)
		if was, sent := o.sent[p]; sent && was == form {
			continue
		}
		if err := s.sendPrefix(ctx, p, form, false); err != nil {
			failed[p] = fmt.Errorf("announce %s: %w", p, err)
			continue
		}
		o.sent[p] = form
	}
	return failed
}

func (s *GoBGP) sendPrefix(ctx context.Context, p netip.Prefix, form unicastForm, withdraw bool) error {
	path, err := encodeUnicast(p, form, withdraw)
	if err != nil {
		return err
	}
	if withdraw {
		return s.server.DeletePath(ctx, &api.DeletePathRequest{Path: path})
	}
	_, err = s.server.AddPath(ctx, &api.AddPathRequest{Path: path})
	return err
}

// Announced is how many routes a drain takes back of those that the neighbours have:
// those of Type 5, and addresses that are exposed without EVPN.
func (s *GoBGP) Announced() int {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	return len(s.out.sent) + s.unicastOut.exposed()
}

// exposed counts what is sent and not the node's own part in the underlay.
func (o unicastOut) exposed() (n int) {
	for p := range o.sent {
		n += boolean(o.wanted[p]&useUnderlay == 0)
	}
	return n
}

// byFamily counts what is sent.
func (o unicastOut) byFamily() map[Families]int {
	out := map[Families]int{}
	for p := range o.sent {
		if p.Addr().Is4() {
			out[FamilyIPv4]++
		} else {
			out[FamilyIPv6]++
		}
	}
	return out
}

// announceUnicastLocked hands what is wanted to a server that has just started.
func (s *GoBGP) announceUnicastLocked(ctx context.Context) {
	for p, err := range s.sendUnicastLocked(ctx) {
		s.log.Error("a prefix cannot be announced", slog.String("prefix", p.String()), slog.Any("error", err))
	}
}

// encodeUnicast is a prefix of this node's. An unspecified next hop becomes the
// address of each session: next hop self.
func encodeUnicast(p netip.Prefix, form unicastForm, withdraw bool) (*api.Path, error) {
	family, self := FamilyIPv4, netip.IPv4Unspecified()
	if p.Addr().Is6() {
		family, self = FamilyIPv6, netip.IPv6Unspecified()
	}
	nlri, err := anypb.New(&api.IPAddressPrefix{Prefix: p.Addr().String(), PrefixLen: uint32(p.Bits())})
	out := &api.Path{Family: family.wire(), Nlri: nlri, IsWithdraw: withdraw}
	errs := []error{err}
	attributes := []proto.Message{&api.OriginAttribute{Origin: originIGP}, &api.NextHopAttribute{NextHop: self.String()}}
	if form.shutdown {
		attributes = append(attributes, &api.LocalPrefAttribute{}, &api.CommunitiesAttribute{Communities: []uint32{communityGracefulShutdown}})
	}
	for _, m := range attributes {
		attr, err := anypb.New(m)
		out.Pattrs, errs = append(out.Pattrs, attr), append(errs, err)
	}
	return out, errors.Join(errs...)
}

// UnicastAnnouncements is the speaker as the driver of the table of the prefixes
// that this node announces as plain unicast.
func (s *GoBGP) UnicastAnnouncements() reconcile.Driver[netip.Prefix, intent.UnderlayAnnouncement] {
	return unicastDriver{s, map[netip.Prefix]intent.UnderlayAnnouncement{}}
}

type unicastDriver struct {
	speaker *GoBGP
	listed  map[netip.Prefix]intent.UnderlayAnnouncement
}

// List implements reconcile.Driver.
func (d unicastDriver) List(context.Context) (map[netip.Prefix]intent.UnderlayAnnouncement, error) {
	return maps.Clone(d.listed), nil
}

// Apply implements reconcile.Driver.
func (d unicastDriver) Apply(ctx context.Context, rows []reconcile.Row[netip.Prefix, intent.UnderlayAnnouncement]) []error {
	keys := make([]netip.Prefix, 0, len(rows))
	for _, r := range rows {
		keys = append(keys, r.Key)
	}
	failed := d.speaker.setUnicast(ctx, useUnderlay, keys, nil)
	errs := make([]error, len(rows))
	for i, r := range rows {
		d.listed[r.Key] = r.Value
		if errs[i] = failed[r.Key]; errs[i] != nil {
			d.listed[r.Key] = intent.UnderlayAnnouncement{}
		}
	}
	return reconcile.Results(errs)
}

// Delete implements reconcile.Driver.
func (d unicastDriver) Delete(ctx context.Context, keys []netip.Prefix) []error {
	failed := d.speaker.setUnicast(ctx, useUnderlay, nil, keys)
	errs := make([]error, len(keys))
	for i, k := range keys {
		delete(d.listed, k)
		if errs[i] = failed[k]; errs[i] != nil {
			d.listed[k] = intent.UnderlayAnnouncement{}
		}
	}
	return reconcile.Results(errs)
}
