package northbound_test

import (
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// Of two servers that replicate the store goes to the active one, also when the one in use becomes the
// standby.
func TestStandby(t *testing.T) {
	active := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	standby := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound, SyncFrom: active.Endpoint()})
	insert := func(n int) func(tx *northbound.Tx) error {
		return func(tx *northbound.Tx) error { tx.Insert(&nb.LoadBalancer{UUID: uuidOf(n), Name: "lb"}); return nil }
	}
	for n := range 8 { // endpoints are tried in an order chosen at random
		commit(t, open(t, standby.Endpoint()+","+active.Endpoint()), insert(n))
	}
	s := open(t, active.Endpoint())
	commit(t, s, insert(8))
	active.Appctl("ovsdb-server/set-active-ovsdb-server", "unix:/nonexistent")
	active.Appctl("ovsdb-server/connect-active-ovsdb-server")
	done := make(chan error, 1)
	go func() { done <- s.Commit(deadline(t), "test", insert(9)) }()
	until(t, "the store to leave the standby", func() bool { return !s.Status().Connected })
	active.Appctl("ovsdb-server/disconnect-active-ovsdb-server")
	if err := <-done; err != nil {
		t.Errorf("a write when it is active again: %v", err)
	}
	if got := names(barrier(t, s)); len(got) != 10 || slices.Compact(got)[0] != "lb" {
		t.Errorf("rows %q", got)
	}
}
