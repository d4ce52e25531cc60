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

type learnedBench struct {
	*testing.T
	*kernel.LearnedRoutes
	ns string
}

func newLearnedBench(t *testing.T) learnedBench {
	host := newHost(t, "l")
	return learnedBench{t, kernel.NewLearnedRoutes(host.namespace()), host.ns}
}

func (b learnedBench) ip(command string) string {
	b.Helper()
	out, err := exec.Command("ip", append([]string{"-n", b.ns}, strings.Fields(command)...)...).CombinedOutput()
	if err != nil {
		b.Fatalf("ip %s: %v: %s", command, err, out)
	}
	return string(out)
}

func learnedRow(table uint32, prefix, via string) intent.LearnedRoute {
	return intent.LearnedRoute{Key: intent.LearnedKey{Table: table, Prefix: netip.MustParsePrefix(prefix)}, Via: netip.MustParseAddr(via)}
}

func (b learnedBench) apply(rows ...intent.LearnedRoute) []error {
	var list []reconcile.Row[intent.LearnedKey, intent.LearnedRoute]
	for _, r := range rows {
		list = append(list, reconcile.Row[intent.LearnedKey, intent.LearnedRoute]{Key: r.Key, Value: r})
	}
	return b.Apply(b.Context(), list)
}

// is checks what List reads.
func (b learnedBench) is(rows ...intent.LearnedRoute) {
	b.Helper()
	want := map[intent.LearnedKey]intent.LearnedRoute{}
	for _, r := range rows {
		want[r.Key] = r
	}
	if got, err := b.List(b.Context()); err != nil || !maps.Equal(got, want) {
		b.Fatalf("rows %v, %v; want %v", got, err, want)
	}
}

func TestLearnedRoutes(t *testing.T) {
	b := newLearnedBench(t)
	b.is()
	rows := []intent.LearnedRoute{
		learnedRow(7, "10.20.0.0/24", "172.24.0.1"), learnedRow(7, "0.0.0.0/0", "172.24.0.1"), learnedRow(7, "10.20.0.11/32", "172.24.0.1"),
		learnedRow(7, "fd00:20::/64", "fd00:24::1"), learnedRow(7, "::/0", "fe80::1"), learnedRow(70000, "10.20.0.0/24", "172.24.0.9"),
	}
	for range 2 { // the second time nothing changes
		if errs := b.apply(rows...); errs != nil {
			t.Fatal(errs)
		}
		b.is(rows...)
	}
	for _, r := range []string{"10.20.0.0/24 via 172.24.0.1 dev sluice-learned proto 117 metric 174 onlink", "default via 172.24.0.1"} {
		if got := b.ip("route show table 7"); !strings.Contains(got, r) {
			t.Errorf("%q is not in %s", r, got)
		}
	}
	moved := learnedRow(7, "fd00:20::/64", "fd00:24::2")
	rows[3] = moved
	if errs := b.apply(moved, learnedRow(70000, "10.20.0.0/24", "172.24.0.9")); errs != nil {
		t.Fatal(errs)
	}
	b.is(rows...)
	if errs := b.Delete(t.Context(), []intent.LearnedKey{rows[0].Key, rows[5].Key, {Table: 99, Prefix: rows[0].Key.Prefix}}); errs != nil {
		t.Fatal(errs)
	}
	b.is(rows[1:5]...)
	var keys []intent.LearnedKey
	for _, r := range rows {
		keys = append(keys, r.Key)
	}
	if errs := b.Delete(t.Context(), keys); errs != nil {
		t.Fatal(errs)
	}
	b.is()
	if links := b.ip("link"); strings.Contains(links, intent.LearnedDevice) {
		t.Errorf("the device is left: %s", links)
	}
}

// TestLearnedRoutesOfOthers: a table is shared with ovn-controller's blackholes and
// with what an operator puts there.
func TestLearnedRoutesOfOthers(t *testing.T) {
	b := newLearnedBench(t)
	b.ip("link set lo up")
	others := []string{
		"blackhole 10.20.0.0/24 proto ovn metric 1000", "10.20.0.0/24 via 192.0.2.9 dev lo proto static metric 5 onlink",
		"10.30.0.0/24 via 192.0.2.9 dev lo proto static metric 174 onlink", "10.40.0.0/24 dev lo proto 200 scope link metric 3",
	}
	others[0] = strings.Replace(others[0], "proto ovn", "proto 84", 1)
	for _, r := range others {
		b.ip("route add " + r + " table 7")
	}
	before := b.ip("route show table 7")
	row, taken := learnedRow(7, "10.20.0.0/24", "172.24.0.1"), learnedRow(7, "10.30.0.0/24", "172.24.0.1")
	errs := b.apply(row, taken, learnedRow(254, "10.50.0.0/24", "172.24.0.1"), learnedRow(7, "fd00::/64", "172.24.0.1"))
	if len(errs) != 4 || errs[0] != nil || !errors.Is(errs[1], reconcile.ErrForeign) || errs[2] == nil || errs[3] == nil {
		t.Fatal(errs)
	}
	b.is(row)
	if errs := b.Delete(t.Context(), []intent.LearnedKey{row.Key, taken.Key}); errs != nil {
		t.Fatal(errs)
	}
	if now := b.ip("route show table 7"); now != before {
		t.Errorf("routes of others were\n%sand are\n%s", before, now)
	}
}

// TestLearnedRoutesDamage: what somebody changes is listed as such and made again.
func TestLearnedRoutesDamage(t *testing.T) {
	b := newLearnedBench(t)
	rows := []intent.LearnedRoute{learnedRow(7, "10.20.0.0/24", "172.24.0.1"), learnedRow(7, "fd00:20::/64", "fd00:24::1")}
	for name, damage := range map[string][]string{
		"a second route":  {"route append 10.20.0.0/24 via 172.24.0.7 dev sluice-learned onlink proto 117 metric 175 table 7"},
		"another hop":     {"route change 10.20.0.0/24 via 172.24.0.7 dev sluice-learned onlink proto 117 metric 174 table 7"},
		"the device down": {"link set sluice-learned down"},
		"no device":       {"link del sluice-learned"},
		"no routes":       {"route flush table 7", "-6 route flush table 7"},
	} {
		t.Run(name, func(t *testing.T) {
			if errs := b.apply(rows...); errs != nil {
				t.Fatal(errs)
			}
			b.is(rows...)
			for _, command := range damage {
				b.ip(command)
			}
			got, err := b.List(t.Context())
			if err != nil || got[rows[0].Key] == rows[0] {
				t.Fatalf("rows %v, %v", got, err)
			}
			if errs := b.apply(rows...); errs != nil {
				t.Fatal(errs)
			}
			b.is(rows...)
		})
	}
	if err := b.Remove(); err != nil {
		t.Fatal(err)
	}
	if there, err := b.Exists(); there || err != nil {
		t.Error(there, err)
	}
	b.is()
}

// TestLearnedDeviceOfOthers: a device that is not Sluice's is left alone.
func TestLearnedDeviceOfOthers(t *testing.T) {
	b := newLearnedBench(t)
	b.ip("link add sluice-learned type veth peer name other")
	errs := b.apply(learnedRow(7, "10.20.0.0/24", "172.24.0.1"))
	if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrForeign) {
		t.Fatal(errs)
	}
	if err := b.Remove(); err != nil {
		t.Fatal(err)
	}
	b.ip("link show sluice-learned")
}
