package bgp

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestPrefixRules(t *testing.T) {
	rule := func(permit bool, prefix string, ge, le uint8) PrefixRule {
		return PrefixRule{permit, netip.MustParsePrefix(prefix), ge, le}
	}
	for _, tt := range []struct {
		name         string
		rules        []PrefixRule
		permit, deny []string
	}{
		{"none", nil, []string{"10.0.0.0/8", "::/0"}, nil},
		{"exact", []PrefixRule{rule(true, "10.0.0.0/8", 0, 0)}, []string{"10.0.0.0/8"}, []string{"10.0.0.0/9", "0.0.0.0/0", "fd00::/8"}},
		{"ge", []PrefixRule{rule(true, "10.0.0.0/8", 24, 0)}, []string{"10.1.2.0/24", "10.1.2.3/32"}, []string{"10.0.0.0/8", "10.1.0.0/16", "11.1.2.0/24"}},
		{"le", []PrefixRule{rule(true, "10.0.0.0/8", 0, 24)}, []string{"10.0.0.0/8", "10.1.2.0/24"}, []string{"10.1.2.3/32", "0.0.0.0/0"}},
		{"both", []PrefixRule{rule(true, "fd00::/16", 48, 64)}, []string{"fd00:1::/48", "fd00::/64"}, []string{"fd00::/16", "fd00::1/128", "10.0.0.0/8"}},
		{"the first match decides", []PrefixRule{rule(false, "10.66.0.0/16", 0, 32), rule(true, "0.0.0.0/0", 0, 32)},
			[]string{"10.65.0.0/16", "0.0.0.0/0"}, []string{"10.66.0.0/16", "10.66.1.1/32", "::/0"}},
		{"everything but", []PrefixRule{rule(false, "0.0.0.0/0", 0, 0), rule(true, "0.0.0.0/0", 0, 32), rule(true, "::/0", 0, 128)},
			[]string{"10.0.0.0/8", "::/0"}, []string{"0.0.0.0/0"}},
	} {
		for want, list := range map[bool][]string{true: tt.permit, false: tt.deny} {
			for _, p := range list {
				if got := (VRFImport{Filter: tt.rules}).permits(netip.MustParsePrefix(p)); got != want {
					t.Errorf("%s: %s is permitted: %t", tt.name, p, got)
				}
			}
		}
	}
}

// limited is a rib with two VRFs that import one route target, the first with limits.
func limited(limit VRFImport) *rib {
	r := newRIB(notOwn, time.Second, 0)
	r.limits = map[intent.VNI]VRFImport{1001: limit}
	r.setPolicies(policies(intent.VRFPolicy{VNI: 1001, Index: 1, Import: targets("1:1")}, intent.VRFPolicy{VNI: 1002, Index: 2, Import: targets("1:1")}))
	return r
}

func change(r *rib, prefix string, withdrawn bool) {
	p := testPath(prefix, "192.0.2.1", "1:1")
	p.withdrawn = withdrawn
	r.apply(p, epoch)
	r.settle(epoch)
}

func TestFilterIsOneVRFs(t *testing.T) {
	r := limited(VRFImport{Filter: []PrefixRule{{Permit: true, Prefix: netip.MustParsePrefix("10.0.0.0/8"), LE: 24}}})
	for _, p := range []string{"10.1.0.0/24", "10.2.0.0/32", "fd00::/64"} {
		change(r, p, false)
	}
	if s := r.vrfStatus(); s[1001] != (VRFStatus{Imported: 1, Filtered: 2, FilteredTotal: 2}) || s[1002] != (VRFStatus{Imported: 3}) {
		t.Errorf("%+v", s)
	}
	seen := map[string]RouteInfo{}
	for _, p := range r.received(nil) {
		seen[p.prefix.String()] = p.info(r.importersNow())
	}
	if i := seen["fd00::/64"]; fmt.Sprint(i.VRFs) != "[1002]" || i.Rejected != "" {
		t.Errorf("%+v", i)
	}
	// Without the second VRF nobody takes it, and that is why.
	r.setPolicies(policies(r.policies[1001]))
	r.settle(epoch)
	for _, p := range r.received(nil) {
		if i := p.info(r.importersNow()); p.prefix.Bits() == 64 && (len(i.VRFs) != 0 || len(i.Importers) == 0 || i.Rejected != ReasonFiltered) {
			t.Errorf("%+v", i)
		}
	}
	change(r, "fd00::/64", true)
	r.setPolicies(nil)
	r.settle(epoch)
	if s := r.vrfStatus()[1001]; s != (VRFStatus{FilteredTotal: 2}) {
		t.Errorf("left: %+v", s)
	}
}

func TestMaxPrefixesOfAVRF(t *testing.T) {
	r := limited(VRFImport{MaxPrefixes: 3})
	prefix := func(i int) string { return fmt.Sprintf("10.0.%d.0/24", i) }
	for i := range 5 {
		change(r, prefix(i), false)
	}
	check := func(imported, waiting int) {
		t.Helper()
		if s := r.vrfStatus()[1001]; s.Imported != imported || s.Waiting != waiting || len(r.routes[1002]) != len(r.paths) {
			t.Errorf("%+v; want %d imported, %d waiting", s, imported, waiting)
		}
	}
	check(3, 2)
	for i := range 3 {
		if r.routes[1001][netip.MustParsePrefix(prefix(i))] == "" {
			t.Errorf("%s came first and is not in", prefix(i))
		}
	}
	change(r, prefix(0), false) // as it was
	check(3, 2)
	change(r, prefix(4), true) // one that waits
	check(3, 1)
	change(r, prefix(0), true)
	check(3, 0)
	for _, i := range []int{1, 2, 3} {
		change(r, prefix(i), true)
	}
	check(0, 0)
	for i := range 5 {
		change(r, prefix(i), false)
	}
	// More than one place at once: each is taken.
	for i := range 3 {
		p := testPath(prefix(i), "192.0.2.1", "1:1")
		p.withdrawn = true
		r.apply(p, epoch)
	}
	r.settle(epoch)
	check(2, 0)
}
