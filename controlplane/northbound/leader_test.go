package northbound_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// The leader of a cluster is killed, and hands over, while callers of two replicas write: each create is
// there once, none finds its own work taken for another's, and both replicas go on at the new leader.
func TestLeaderChanges(t *testing.T) {
	members := ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Northbound}, 3)
	var all []string
	for _, m := range members {
		all = append(all, m.Endpoint())
	}
	stores := []*northbound.Store{open(t, strings.Join(all, ",")), open(t, strings.Join(all, ","))}
	commit(t, stores[0], func(tx *northbound.Tx) error { tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(0), Name: "n1"}); return nil })
	stop := make(chan struct{})
	var made, unread atomic.Int32
	var wg sync.WaitGroup
	for caller := range 4 {
		wg.Go(func() {
			for i := 1; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				id, s := uuidOf(caller*100000+i), stores[caller%2]
				err := s.Commit(deadline(t), "test", func(tx *northbound.Tx) error {
					_, found := northbound.Get[*nb.LoadBalancer](tx, id)
					switch {
					case found && !tx.Again:
						return errors.New("its own row is somebody else's")
					case found:
						return nil
					}
					ls, ok := northbound.One(tx, northbound.SwitchByName, "n1", "load_balancer")
					if !ok {
						return errors.New("the switch is gone")
					}
					tx.Insert(&nb.LoadBalancer{UUID: id, Name: id})
					ls.LoadBalancer = append(ls.LoadBalancer, id)
					tx.Update(ls, "load_balancer")
					return nil
				})
				if err != nil {
					t.Errorf("create %s: %v", id, err)
					return
				}
				made.Add(1)
				snapshot, err := s.Snapshot()
				if err != nil {
					t.Error(err)
					return
				}
				if _, found := northbound.Get[*nb.LoadBalancer](snapshot, id); !found {
					unread.Add(1)
				}
			}
		})
	}
	more := func() {
		t.Helper()
		from := made.Load()
		until(t, "more creates", func() bool { return made.Load() > from+40 || t.Failed() })
	}
	more()
	leader := ovsdbtest.Leader(t, members)
	leader.Kill()
	more()
	leader.Run()
	next := ovsdbtest.Leader(t, members)
	next.Appctl("cluster/leave", "OVN_Northbound") // which hands over first
	members = slices.DeleteFunc(members, func(m *ovsdbtest.Server) bool { return m == next })
	more()
	close(stop)
	wg.Wait()
	if n := unread.Load(); n > 0 {
		t.Errorf("%d creates were done and not in the snapshot", n)
	}
	snapshot := barrier(t, stores[0])
	ls, _ := northbound.One(snapshot, northbound.SwitchByName, "n1")
	if n, want := snapshot.Len(nb.LoadBalancerTable), int(made.Load()); n != want || len(ls.LoadBalancer) != want {
		t.Errorf("%d load balancers, %d at their switch, of %d", n, len(ls.LoadBalancer), want)
	}
	for i, s := range stores {
		if at := ovsdbtest.Leader(t, members).Endpoint(); s.Status().Endpoint != at {
			t.Errorf("replica %d is at %s, the leader is %s", i, s.Status().Endpoint, at)
		}
		t.Logf("replica %d: %+v", i, s.Stats())
	}
}
