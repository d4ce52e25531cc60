package kernel_test

import (
	"errors"
	"maps"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

type underlayBench struct {
	*testing.T
	*kernel.UnderlayRoutes
	ns string
}

func newUnderlayBench(t *testing.T) underlayBench {
	host := newHost(t, "u")
	b := underlayBench{t, kernel.NewUnderlayRoutes(host.namespace()), host.ns}
	for _, n := range []string{"1", "2"} {
		b.ip("link add eth" + n + " type veth peer name far" + n)
		b.ip("link set eth" + n + " addrgenmode none")
		b.ip("link set eth" + n + " up")
		b.ip("link set far" + n + " up")
		b.ip("addr add fe80::" + n + "/64 dev eth" + n + " nodad")
		b.ip("addr add 192.0." + n + ".0/31 dev eth" + n)
		b.ip("addr add 2001:db8:" + n + "::/127 dev eth" + n + " nodad")
	}
	b.ip("link set lo up")
	b.ip("addr add 10.0.0.1/32 dev lo")
	b.ip("addr add 2001:db8::1/128 dev lo")
	return b
}

func (b underlayBench) ip(command string) string {
	b.Helper()
	out, err := exec.Command("ip", append([]string{"-n", b.ns}, strings.Fields(command)...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("ip %s: %v: %s", command, err, out)
	}
	return string(out)
}

func (b underlayBench) apply(rows ...intent.UnderlayRoute) []error {
	list := make([]reconcile.Row[netip.Prefix, intent.UnderlayRoute], 0, len(rows))
	for _, r := range rows {
		list = append(list, reconcile.Row[netip.Prefix, intent.UnderlayRoute]{Key: r.Prefix, Value: r})
	}
	return b.Apply(b.Context(), list)
}

func (b underlayBench) rows() map[netip.Prefix]intent.UnderlayRoute {
	b.Helper()
	rows, err := b.List(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	return rows
}

func underlayRow(prefix, source string, metric uint32, hops ...string) intent.UnderlayRoute {
	r := intent.UnderlayRoute{Prefix: netip.MustParsePrefix(prefix), Metric: metric}
	if source != "" {
		r.Source = netip.MustParseAddr(source)
	}
	var list []intent.UnderlayHop
	for _, h := range hops {
		via, device, _ := strings.Cut(h, "%")
		list = append(list, intent.UnderlayHop{Via: netip.MustParseAddr(via), Device: device})
	}
	r.Hops = intent.NewUnderlayHops(list...)
	return r
}

// What is applied is listed as it was given, in both families, over addresses of
// either, by one way and by two, and changes in place.
func TestUnderlayRoutes(t *testing.T) {
	b := newUnderlayBench(t)
	before := b.ip("route") + b.ip("-6 route")
	for _, rows := range [][]intent.UnderlayRoute{
		{underlayRow("10.9.0.1/32", "", 2048, "192.0.1.1%eth1"), underlayRow("2001:db8:9::1/128", "", 2048, "fe80::a%eth1")},
		{underlayRow("10.9.0.1/32", "10.0.0.1", 2048, "fe80::a%eth1", "fe80::b%eth2"), underlayRow("2001:db8:9::1/128", "2001:db8::1", 2048, "fe80::a%eth1", "fe80::b%eth2")},
		{underlayRow("10.9.0.1/32", "10.0.0.1", 2048, "fe80::b%eth2"), underlayRow("2001:db8:9::1/128", "2001:db8::1", 2048, "fe80::b%eth2")},
		{underlayRow("10.9.0.1/32", "", 2048, "192.0.1.1%eth1", "192.0.2.1%eth2"), underlayRow("2001:db8:9::1/128", "", 2048, "2001:db8:1::1%eth1", "2001:db8:2::1%eth2")},
		{underlayRow("10.9.0.1/32", "", 20, "192.0.1.1%eth1", "fe80::b%eth2"), underlayRow("2001:db8:9::1/128", "", 20, "fe80::a%eth1", "fe80::b%eth2")},
		{underlayRow("0.0.0.0/0", "10.0.0.1", 20, "fe80::a%eth1"), underlayRow("::/0", "", 20, "fe80::a%eth1", "fe80::b%eth2")},
	} {
		if err := errors.Join(b.apply(rows...)...); err != nil {
			t.Fatal(err)
		}
		have := b.rows()
		for _, r := range rows {
			if have[r.Prefix] != r {
				t.Errorf("want %+v, listed %+v\n%s%s", r, have[r.Prefix], b.ip("route"), b.ip("-6 route"))
			}
		}
		if err := errors.Join(b.apply(rows...)...); err != nil || !maps.Equal(b.rows(), have) {
			t.Errorf("applied again: %v", err)
		}
	}
	var keys []netip.Prefix
	for p := range b.rows() {
		keys = append(keys, p)
	}
	if len(keys) != 4 {
		t.Errorf("listed %v", keys)
	}
	for range 2 {
		if err := errors.Join(b.Delete(t.Context(), keys)...); err != nil {
			t.Fatal(err)
		}
	}
	if after := b.ip("route") + b.ip("-6 route"); after != before {
		t.Errorf("left:\n%s\nwas:\n%s", after, before)
	}
}

// A route of others is neither replaced nor joined, and stays beside ours where the
// metric is another.
func TestUnderlayRoutesOfOthers(t *testing.T) {
	b := newUnderlayBench(t)
	for _, r := range []string{
		"route add 10.9.0.1/32 via 192.0.1.1 dev eth1 metric 20 proto static",
		"-6 route add 2001:db8:9::1/128 via fe80::a dev eth1 metric 20 proto static",
	} {
		b.ip(r)
	}
	before := b.ip("route") + b.ip("-6 route")
	errs := b.apply(underlayRow("10.9.0.1/32", "", 20, "192.0.2.1%eth2"), underlayRow("2001:db8:9::1/128", "", 20, "fe80::b%eth2"),
		underlayRow("10.9.0.2/32", "", 20, "192.0.2.1%gone0"), underlayRow("10.9.0.3/32", "", 20))
	if !errors.Is(errs[0], reconcile.ErrForeign) || !errors.Is(errs[1], reconcile.ErrForeign) || !errors.Is(errs[2], reconcile.ErrNotReady) || errs[3] == nil {
		t.Errorf("errors %v", errs)
	}
	if after := b.ip("route") + b.ip("-6 route"); after != before {
		t.Errorf("now:\n%s\nwas:\n%s", after, before)
	}
	mine := []intent.UnderlayRoute{underlayRow("10.9.0.1/32", "", 2048, "192.0.2.1%eth2"), underlayRow("2001:db8:9::1/128", "", 2048, "fe80::b%eth2")}
	if err := errors.Join(b.apply(mine...)...); err != nil {
		t.Fatal(err)
	}
	if rows := b.rows(); len(rows) != 2 || rows[mine[0].Prefix] != mine[0] || rows[mine[1].Prefix] != mine[1] {
		t.Errorf("listed %v", rows)
	}
	if err := errors.Join(b.Delete(t.Context(), []netip.Prefix{mine[0].Prefix, mine[1].Prefix})...); err != nil {
		t.Fatal(err)
	}
	if after := b.ip("route") + b.ip("-6 route"); after != before {
		t.Errorf("left:\n%s\nwas:\n%s", after, before)
	}
}
