package tables

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// SetVIPs replaces the wanted VIPs. Call it inside an update of the pipeline.
func (t *Tables) SetVIPs(all map[intent.VIPKey]intent.VIP) {
	var gone []intent.VIPKey
	Of(t, intent.VIPs).EachLocked(func(k intent.VIPKey, _ intent.VIP) {
		if _, stays := all[k]; !stays {
			gone = append(gone, k)
		}
	})
	t.followVIPs(all, gone)
	Of(t, intent.VIPs).Set(all)
}

// UpdateVIPs changes the wanted VIPs. Call it inside an update of the pipeline.
func (t *Tables) UpdateVIPs(set map[intent.VIPKey]intent.VIP, gone []intent.VIPKey) {
	t.followVIPs(set, gone)
	Of(t, intent.VIPs).Update(set, gone)
}

// followVIPs is told of a change of the wanted VIPs before it is made.
func (t *Tables) followVIPs(set map[intent.VIPKey]intent.VIP, gone []intent.VIPKey) {
	left := false
	for _, k := range gone {
		if _, again := set[k]; again {
			continue
		}
		if old, had := Of(t, intent.VIPs).LookupLocked(k); had {
			left = t.leave(old, intent.VIP{Key: k, Flush: old.Flush}) || left
			t.ways.remove(k)
			t.renewed.deleted(Of(t, intent.VIPs), k, t.holdVIPs(k.VNI))
		}
	}
	for k, v := range set {
		old, had := Of(t, intent.VIPs).LookupLocked(k)
		if had && old.Backends != v.Backends {
			left = t.leave(old, v) || left
		}
		if !had {
			t.ways.add(k)
		}
	}
	if left {
		t.ways.to.forget()
		t.ways.from.forget()
	}
}

// awaitVIP leaves a VIP as it is until there are ways to all of its backends that get new
// flows, and back: what it led to another one would be dropped, or answered to nobody. A
// backend that it leads to already is not waited for.
func (t *Tables) awaitVIP(k intent.VIPKey, v, actual intent.VIP, _ bool) error {
	var led map[netip.AddrPort]bool
	for _, b := range v.Backends.All() {
		err := gates{t, false}.way(k, b)
		if err == nil {
			continue
		}
		if led == nil {
			led = map[netip.AddrPort]bool{}
			for _, old := range actual.Backends.All() {
				led[netip.AddrPortFrom(old.Addr, old.Port)] = old.Weight > 0
			}
		}
		if !led[netip.AddrPortFrom(b.Addr, b.Port)] {
			return err
		}
	}
	return nil
}

// vips lets an address that nothing but VIPs has be announced once one of them is served,
// by whomever. A VIP that is added to the address, or changed, takes nothing from the others.
func (g gates) vips(address intent.RouteKey) error {
	err := fmt.Errorf("%w for a VIP of %s", reconcile.ErrNotReady, address)
	for _, k := range g.ways.at[address] {
		if err = g.served(k); err == nil {
			return nil
		}
	}
	return err
}

// served tells whether connections to a VIP come about: OVN balances it, be it that its row
// is refused, or eBPF does, with ways to its backends and back.
func (g gates) served(k intent.VIPKey) error {
	want, _ := Of(g, intent.VIPs).LookupLocked(k)
	v, there := Of(g, intent.VIPs).ActualLocked(k)
	if !there && g.rewritten {
		v, there = Of(g, intent.VIPs).RewrittenLocked(k)
	}
	_, err := Of(g, intent.VIPs).StateLocked(k)
	refused := !there && err != nil && !errors.Is(err, reconcile.ErrNotReady)
	switch {
	case want.OVN || there && v.OVN:
		return nil
	case refused: // OVN balances it, or a row that may be there does
	case !there || v.Key != k || !Of(g, intent.VIPs).KnownLocked():
		return fmt.Errorf("%w for VIP %s", reconcile.ErrNotReady, k)
	}
	err = nil
	Of(g, intent.VIPs).MayBeLocked(k, func(v intent.VIP) bool {
		for _, b := range v.Backends.All() {
			if err == nil && !v.OVN {
				err = g.way(k, b)
			}
		}
		return err != nil
	})
	return err
}

// vipsChanged opens and closes the gates of addresses, and of VIPs that were added again.
func (t *Tables) vipsChanged(events []reconcile.Event[intent.VIPKey]) {
	t.renewed.removed(t.Pipeline, Of(t, intent.VIPs), events)
	var hit []intent.RouteKey
	t.Pipeline.View(func() {
		for _, e := range events {
			address := intent.NewHostKey(e.Key.VNI, e.Key.Addr)
			if Of(t, intent.Announcements).WantedLocked(address) && (!e.Programmed || !Of(t, intent.Announcements).ProgrammedLocked(address)) {
				hit = append(hit, address)
			}
		}
	})
	if len(hit) > 0 {
		t.Pipeline.Update(func() { Of(t, intent.Announcements).Touch(hit...) })
	}
}

// waysChanged has VIPs looked at again that wait for ways, and the gates of addresses. It is
// told in which VRFs ways were made, and in which one that is wanted is not there.
func (t *Tables) waysChanged(made, broken map[intent.VNI]bool) {
	if len(made)+len(broken) == 0 {
		return
	}
	t.Pipeline.Update(func() {
		waits := func(k intent.VIPKey, _ intent.VIP) bool {
			return made[k.VNI] && !Of(t, intent.VIPs).ProgrammedLocked(k)
		}
		if _, any := Of(t, intent.VIPs).UnplacedLocked(waits); any {
			Of(t, intent.VIPs).TouchWhere(waits)
		}
		Of(t, intent.Announcements).TouchWhere(func(k intent.RouteKey, a intent.Announcement) bool {
			return a.VIPs && (broken[k.VNI] || made[k.VNI] && !Of(t, intent.Announcements).ProgrammedLocked(k))
		})
	})
}
