package controller_test

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// The leader of the database's cluster is killed in calls: each one is answered, at either replica, and
// who acts on events does so at the next leader.
func TestLeaderIsKilled(t *testing.T) {
	var members []*ovsdbtest.Server
	r := newRandomIn(t, func(t *testing.T) *world {
		members = ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Northbound}, 3)
		var endpoints []string
		for _, m := range members {
			endpoints = append(endpoints, m.Endpoint())
		}
		return newWorldAt(t, ovsdbtest.Leader(t, members), func() (string, *ovsdbtest.Proxy) { return strings.Join(endpoints, ","), nil })
	}, 3, 30)
	for r.next() {
		for range 5 {
			r.do(r.IntN(2), r.change(), noFault, nil)
		}
		c := r.change()
		for c.apply == nil { // one that is done
			c = r.change()
		}
		at := r.IntN(2)
		r.note("replica %d: %s, and the leader is killed", at, c)
		leader := r.database
		killed := make(chan struct{})
		go func() { defer close(killed); leader.Kill() }()
		status, out, err := c.ask(r.replicas[at])
		<-killed
		if err != nil || status != c.want {
			t.Fatalf("%s: %d %v %v", c, status, out, err)
		}
		c.apply(r.model, c.made(out))
		r.database = ovsdbtest.Leader(t, members)
		r.check()
		r.until("the other replica to be at the next leader", func() bool { return r.shows(1-at) == "" })
		r.event()
		leader.Run()
	}
}
