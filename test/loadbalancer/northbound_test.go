package loadbalancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// A sluiced that starts while the Northbound database is away goes on with what the one
// before it knew: no VIP goes, in the fabric or on a tap, no connection breaks, and others
// begin. When the database is back nothing is different.
func TestStartsWithoutNorthbound(t *testing.T) {
	w := shared(t)
	vips := [2]netip.Addr{netip.MustParseAddr("10.99.0.43"), netip.MustParseAddr("fd00:99::43")}
	clients := []string{"c-fabric", "c-same"}
	nodes := []string{"a1", "a2"} // the gateway, and where c-same is
	var all []*streams
	for _, vip := range vips {
		w.webOnSwitches(vip)
		w.answered("c-fabric", "tcp", vip)
		for _, client := range clients {
			all = append(all, w.streams(client, vip, 4))
		}
	}
	asked := func() {
		t.Helper()
		for _, vip := range vips {
			for _, client := range clients {
				w.answered(client, "tcp", vip)
			}
		}
		for _, s := range all {
			s.check()
		}
	}
	// What each node serves, and announces.
	served := func(node string) (out []status.VIP) {
		t.Helper()
		w.eventually(node+" has and announces its VIPs", func() (err error) {
			if out, err = w.vips(node); err != nil {
				return err
			}
			return w.announces(node, vips[:])
		})
		return out
	}
	before := map[string][]status.VIP{}
	for _, node := range nodes {
		before[node] = served(node)
		// What others have left, and is to go, would stay until the database is back.
		w.eventually("nothing is to be changed on "+node, func() error {
			_, err := w.Exec(w.Context(), node, w.sluicectl(), "diff")
			return err
		})
	}
	nb, err := w.Process("a-central", "nb")
	if err == nil {
		err = nb.Stop()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // what was added has to be removed
		if nb.Running() {
			return
		}
		err := nb.Start()
		if err == nil {
			err = w.WaitFor(context.WithoutCancel(w.Context()), "the database", func() error { _, err := w.NB(context.Background(), "a", "show"); return err })
		}
		if err != nil {
			t.Error(err)
		}
	})
	for _, node := range nodes {
		p, err := w.Process(node, "sluiced")
		if err == nil {
			err = p.Restart()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	asked()
	for _, node := range nodes {
		w.eventually(node+" goes on with what it knew", func() error { return w.condition(node, "nb", "its content saved at ") })
		if diff := cmp.Diff(before[node], served(node), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("VIPs of %s: %s", node, diff)
		}
	}
	asked()
	if err := nb.Start(); err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes {
		w.eventually(node+" is in sync again", func() error { return w.condition(node, "nb", "unix:", "tcp:", "ssl:") })
		if diff := cmp.Diff(before[node], served(node), cmpopts.EquateComparable(netip.Addr{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("VIPs of %s afterwards: %s", node, diff)
		}
	}
	asked()
	w.nb("--wait=hv", "sync")
}

// announces demands that neighbours have the routes to VIPs of a gateway.
func (w *world) announces(node string, vips []netip.Addr) error {
	if node != "a1" {
		return nil
	}
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "route", "list")
	var routes []status.Route
	if err := errors.Join(err, json.Unmarshal([]byte(out), &routes)); err != nil {
		return err
	}
	for _, vip := range vips {
		found := false
		for _, r := range routes {
			found = found || r.Prefix == netip.PrefixFrom(vip, vip.BitLen()) && r.Announced != nil && *r.Announced
		}
		if !found {
			return fmt.Errorf("%s is not announced by %s", vip, node)
		}
	}
	return nil
}

// condition demands that what a node says of a component begins with one of some words.
func (w *world) condition(node, component string, words ...string) error {
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "status")
	var report status.Status
	if failed := json.Unmarshal([]byte(out), &report); failed != nil {
		return errors.Join(err, failed)
	}
	for _, c := range report.Conditions {
		for _, word := range words {
			if c.Name == component && strings.HasPrefix(c.Detail, word) {
				return nil
			}
		}
	}
	return fmt.Errorf("%+v", report.Conditions)
}
