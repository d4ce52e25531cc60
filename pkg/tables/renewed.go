package tables

import (
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// renewals are the VIPs that OVN has deleted, until their rows are. A VIP that is wanted again before
// that is another one: its row waits until that of the deleted VIP is removed, with its sessions.
// Guarded by the pipeline.
type renewals map[intent.VIPKey]struct{}

// anyVIP matches each value that a row may have.
func anyVIP(intent.VIP) bool { return true }

// deleted is told of a VIP that is no longer wanted, and whether its row is kept: then that says
// nothing of OVN.
func (r renewals) deleted(t *reconcile.Table[intent.VIPKey, intent.VIP], k intent.VIPKey, kept bool) {
	if !kept && t.MayBeLocked(k, anyVIP) {
		r[k] = struct{}{}
	}
}

// gate keeps a VIP out while the row of the deleted VIP may be there.
func (r renewals) gate(t *reconcile.Table[intent.VIPKey, intent.VIP], k intent.VIPKey) error {
	if _, deleted := r[k]; deleted && t.MayBeLocked(k, anyVIP) {
		return fmt.Errorf("%w for the sessions of the deleted VIP %s to end", reconcile.ErrNotReady, k)
	}
	delete(r, k)
	return nil
}

// removed is told what became of rows: of a deleted VIP that is wanted again the row is written next.
func (r renewals) removed(p *reconcile.Pipeline, t *reconcile.Table[intent.VIPKey, intent.VIP], events []reconcile.Event[intent.VIPKey]) {
	p.View(func() {
		for _, e := range events {
			if _, deleted := r[e.Key]; e.Programmed || e.Err != nil || deleted && t.MayBeLocked(e.Key, anyVIP) {
				continue
			}
			delete(r, e.Key)
			if t.WantedLocked(e.Key) {
				p.Kick()
			}
		}
	})
}
