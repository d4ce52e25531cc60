package status

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// newRegistry has a clock that goes on by a second at each look, and a log.
func newRegistry() (*Registry, *bytes.Buffer) {
	var log bytes.Buffer
	r := NewRegistry(slog.New(slog.NewTextHandler(&log, nil)))
	t := time.Unix(0, 0).UTC()
	r.now = func() time.Time { t = t.Add(time.Second); return t }
	return r, &log
}

func lines(b *bytes.Buffer) int { n := strings.Count(b.String(), "\n"); b.Reset(); return n }

func TestErrorIsLoggedAndCountedOnce(t *testing.T) {
	r, log := newRegistry()
	p := r.Reporter("evpn")
	bad := Object{Kind: "vrf", Key: "red", State: Error, Reason: "bad-vni", Error: `vni "abc" is not a number`}
	count := func() uint64 { return r.Errors()[ErrorCount{"vrf", "bad-vni"}] }

	p.Set(bad)
	if n := lines(log); n != 1 || count() != 1 {
		t.Fatalf("first: %d lines, count %d", n, count())
	}
	for range 3 {
		p.Set(bad)
		p.Replace([]Object{bad})
	}
	if n := lines(log); n != 0 || count() != 1 {
		t.Fatalf("repeated: %d lines, count %d", n, count())
	}
	first, _ := r.Get("evpn", "vrf", "red")
	bad.Error = `vni "abd" is not a number`
	p.Set(bad)
	second, _ := r.Get("evpn", "vrf", "red")
	if n := lines(log); n != 1 || count() != 1 || !second.Since.After(first.Since) {
		t.Fatalf("changed text: %d lines, count %d", n, count())
	}
	p.Set(Object{Kind: "vrf", Key: "red", State: OK})
	if n := lines(log); n != 1 {
		t.Fatalf("cleared: %d lines", n)
	}
	p.Set(bad)
	p.Replace(nil)
	if n := lines(log); n != 2 || count() != 2 {
		t.Fatalf("again and gone: %d lines, count %d", n, count())
	}
	if got := r.Objects(nil); len(got) != 0 {
		t.Fatalf("left: %v", got)
	}
}

func TestPendingAndWithheldAreQuiet(t *testing.T) {
	r, log := newRegistry()
	p := r.Reporter("evpn")
	p.Set(Object{Kind: "host", Key: "10.0.0.5", State: Withheld, Reason: "nat"})
	p.Set(Object{Kind: "host", Key: "10.0.0.5", State: Pending, Reason: "programming"})
	p.Set(Object{Kind: "host", Key: "10.0.0.5", State: OK})
	if n := lines(log); n != 0 {
		t.Errorf("%d lines", n)
	}
}

func TestReplaceTouchesOneSource(t *testing.T) {
	r, _ := newRegistry()
	a, b := r.Reporter("evpn"), r.Reporter("ebpf")
	a.Replace([]Object{{Kind: "vrf", Key: "1001", State: OK}, {Kind: "vrf", Key: "999", State: OK}})
	b.Set(Object{Kind: "vrf", Key: "1001", State: Error, Reason: "map-full"})
	a.Replace([]Object{{Kind: "vrf", Key: "1001", State: OK}})
	b.Delete("vrf", "none")
	want := []StateCount{{"vrf", Error, "map-full", 1}, {"vrf", OK, "", 1}}
	if diff := cmp.Diff(want, r.Counts()); diff != "" {
		t.Error(diff)
	}
	if got := r.Problems(); len(got) != 1 || got[0].Source != "ebpf" {
		t.Errorf("problems: %v", got)
	}
}

func TestOrderIsNumeric(t *testing.T) {
	r, _ := newRegistry()
	p := r.Reporter("evpn")
	for _, k := range []string{"1001", "999", "red", "20"} {
		p.Set(Object{Kind: "vrf", Key: k, State: OK})
	}
	var got []string
	for _, o := range r.Objects(nil) {
		got = append(got, o.Key)
	}
	if diff := cmp.Diff([]string{"20", "999", "1001", "red"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReadyWaitsForRequiredComponents(t *testing.T) {
	r, log := newRegistry()
	r.Require("sb", "dataplane")
	r.SetCondition("nb", false, "not-configured", "")
	if ok, missing := r.Ready(); ok || len(missing) != 2 || missing[0].Reason != "starting" {
		t.Fatalf("at first: %v %v", ok, missing)
	}
	r.Await("sb", "for an endpoint")
	r.Await("fabric", "nobody requires it")
	if _, missing := r.Ready(); missing[1].Detail != "for an endpoint" || len(r.Conditions()) != 3 {
		t.Errorf("while it waits: %+v", r.Conditions())
	}
	r.SetCondition("sb", true, "in-sync", "")
	r.SetCondition("dataplane", true, "programmed", "")
	r.Await("sb", "for nothing any more")
	if sb := r.Conditions()[2]; sb.Name != "sb" || sb.Detail != "" {
		t.Errorf("once it has reported: %+v", sb)
	}
	if ok, missing := r.Ready(); !ok {
		t.Fatalf("then: %v", missing)
	}
	log.Reset()
	r.SetCondition("sb", false, "connecting", "connection refused")
	r.SetCondition("sb", false, "connecting", "connection refused, attempt 2")
	if n := lines(log); n != 1 {
		t.Errorf("%d lines", n)
	}
	if ok, missing := r.Ready(); ok || missing[0].Name != "sb" || missing[0].Detail != "connection refused, attempt 2" {
		t.Errorf("at last: %v", missing)
	}
}

func TestManyGoroutines(t *testing.T) {
	r, _ := newRegistry()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			p := r.Reporter(fmt.Sprint(i % 2))
			for j := range 200 {
				p.Set(Object{Kind: "route", Key: fmt.Sprint(j), State: Error, Reason: fmt.Sprint(j % 3)})
				r.SetCondition("sb", j%2 == 0, "x", "")
				r.Counts()
				r.Ready()
				p.Delete("route", fmt.Sprint(j))
			}
		})
	}
	wg.Wait()
	if got := r.Objects(nil); len(got) != 0 {
		t.Errorf("left: %v", got)
	}
}

func TestReportsAreReadBack(t *testing.T) {
	in := NewExplanation(Query{VRF: 1001, Src: netip.MustParseAddr("10.10.0.5"), Dst: netip.MustParseAddr("2001:db8::1")},
		[]Step{{Layer: LayerOVN, Object: "Port_Binding a", Found: true}, {Layer: LayerBGP, Object: "route", Hint: "set the VNI"}})
	if s, cut := in.Missing(); in.Works || !cut || s.Layer != LayerBGP {
		t.Errorf("%+v", in)
	}
	b, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out Explanation
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if b, _ := json.Marshal(Status{}); bytes.Contains(b, []byte("vtep")) || bytes.Contains(b, []byte("routerMAC")) {
		t.Errorf("unset identity is shown: %s", b)
	}
}
