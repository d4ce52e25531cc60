package bpf_test

import (
	"context"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// The kernel refuses a whole batch before its first row: every row has the error,
// and nothing refers to what is not there.
func TestBatchIsRefused(t *testing.T) {
	dir := bpffs(t)
	d := load(t, ebpf.Config{Dir: dir, Node: node(), Limits: fewRows})
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	// User space writes no row of a frozen map any more.
	for _, name := range []string{"hosts_v1", "prefixes4_v1", "prefixes6_v1"} {
		if err := raw(t, dir, name).Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	var rows []reconcile.Row[intent.RouteKey, intent.Route]
	for _, p := range []string{"10.1.0.1/32", "10.1.0.2/32", "fd00::1/128", "10.2.0.0/24", "10.3.0.0/24", "fd00:1::/64", "fd00:2::/64"} {
		r := remote(red, p, hop(peer4, 5001))
		rows = append(rows, reconcile.Row[intent.RouteKey, intent.Route]{Key: r.Key, Value: r})
	}
	errs := d.Routes().Apply(context.Background(), rows)
	for i, r := range rows {
		if len(errs) != len(rows) || errs[i] == nil {
			t.Errorf("%s is taken as written", r.Key)
		}
	}
	for _, f := range d.Fills() {
		switch f.Map {
		case "hosts", "prefixes4", "prefixes6", "nexthops":
			if f.Used != 0 {
				t.Errorf("%s has %d rows", f.Map, f.Used)
			}
		}
	}
}
