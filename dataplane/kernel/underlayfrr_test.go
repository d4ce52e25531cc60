package kernel_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/frrtest"
)

// startZebra runs FRR's zebra with static routes, which are installed as those of
// its other daemons are.
func (b underlayBench) startZebra(static ...string) *frrtest.Router {
	b.Helper()
	r := frrtest.Start(b, b.ns, frrtest.Daemon{Name: "zebra"}, frrtest.Daemon{Name: "staticd"})
	r.Static(static...)
	return r
}

// zebraStatic is the protocol number that zebra gives the routes of staticd.
const zebraStatic = "196"

func (b underlayBench) eventually(what string, cond func() bool) {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); !cond(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("never happened: %s\n%s%s", what, b.ip("route"), b.ip("-6 route"))
		}
	}
}

// FRR keeps routes to the same destinations: with the default metric both are there
// whichever came first, FRR's is used, and each goes without the other. A route
// that zebra takes for a better one, by its metric, would have FRR take its own off.
func TestUnderlayRoutesBesideFRR(t *testing.T) {
	b := newUnderlayBench(t)
	metric := config.Default().Underlay.Install.Metric
	early := []intent.UnderlayRoute{underlayRow("10.9.0.1/32", "", metric, "192.0.2.1%eth2"), underlayRow("2001:db8:9::1/128", "", metric, "fe80::b%eth2")}
	late := []intent.UnderlayRoute{underlayRow("10.9.0.2/32", "", metric, "192.0.2.1%eth2"), underlayRow("2001:db8:9::2/128", "", metric, "fe80::b%eth2")}
	if err := errors.Join(b.apply(early...)...); err != nil {
		t.Fatal(err)
	}
	router := b.startZebra("ip route 10.9.0.1/32 192.0.1.1", "ip route 10.9.0.2/32 192.0.1.1",
		"ipv6 route 2001:db8:9::1/128 2001:db8:1::1", "ipv6 route 2001:db8:9::2/128 2001:db8:1::1")
	frr := func() string { return b.ip("route show proto "+zebraStatic) + b.ip("-6 route show proto "+zebraStatic) }
	b.eventually("FRR has its routes in", func() bool { return strings.Count(frr(), "dev eth1") == 4 })
	if err := errors.Join(b.apply(late...)...); err != nil {
		t.Fatal(err)
	}
	rows := append(append([]intent.UnderlayRoute{}, early...), late...)
	hops := early[0].Hops
	rows[0].Hops = underlayRow("10.9.0.1/32", "", metric, "192.0.2.1%eth2", "fe80::b%eth2").Hops
	if err := errors.Join(b.apply(rows...)...); err != nil {
		t.Fatal(err)
	}
	rows[0].Hops = hops
	if err := errors.Join(b.apply(rows...)...); err != nil {
		t.Fatal(err)
	}
	// zebra works through what it hears in order: this one tells that it has.
	b.ip("route add 10.9.0.3/32 via 192.0.1.1 dev eth1 metric 5")
	b.eventually("zebra has heard of all routes", func() bool {
		return strings.Contains(string(router.VTY("zebra", "show ip route 10.9.0.3/32")), "kernel")
	})
	before := frr()
	check := func(when string) {
		t.Helper()
		if strings.Count(before, "dev eth1") != 4 || frr() != before {
			t.Errorf("%s FRR has\n%s", when, frr())
		}
		for _, r := range rows {
			if got := b.ip("route get " + r.Prefix.Addr().String()); !strings.Contains(got, "dev eth1") {
				t.Errorf("%s %s goes %s", when, r.Prefix, got)
			}
		}
	}
	check("with ours beside")
	have := b.rows()
	var keys []netip.Prefix
	for _, r := range rows {
		if have[r.Prefix] != r {
			t.Errorf("want %+v, listed %+v", r, have[r.Prefix])
		}
		keys = append(keys, r.Prefix)
	}
	if err := errors.Join(b.Delete(t.Context(), keys[:2])...); err != nil {
		t.Fatal(err)
	}
	check("without two of ours")
	// Withdrawn at FRR: a route of its own that somebody else deletes zebra installs again.
	router.Static("no ip route 10.9.0.2/32 192.0.1.1", "no ipv6 route 2001:db8:9::2/128 2001:db8:1::1")
	b.eventually("FRR has taken its routes off", func() bool { return strings.Count(frr(), "dev eth1") == 2 })
	for _, r := range late {
		if got := b.ip("route get " + r.Prefix.Addr().String()); !strings.Contains(got, "dev eth2") {
			t.Errorf("without FRR's route %s goes %s", r.Prefix, got)
		}
	}
	if have := b.rows(); len(have) != 2 {
		t.Errorf("left of ours: %v", have)
	}
}
