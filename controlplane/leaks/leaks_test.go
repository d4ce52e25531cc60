package leaks

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func rts(words string) intent.RouteTargets {
	var out []intent.RouteTarget
	for _, w := range strings.Fields(words) {
		rt, err := intent.ParseRouteTarget(w)
		if err != nil {
			panic(err)
		}
		out = append(out, rt)
	}
	return intent.NewRouteTargets(out...)
}

// vrf is one of this node or in OVN, route what BGP shows of one.
func vrf(where string, vni intent.VNI, imports, exports string) Use {
	return Use{Where: where, VNI: vni, Import: rts(imports), Export: rts(exports), AutoImport: imports == ""}
}

func route(vtep string, label intent.VNI, targets string) Use {
	return Use{Where: vtep, VNI: label, Export: rts(targets)}
}

func TestCheck(t *testing.T) {
	red, blue := vrf("red", 1001, "", "1:1001"), vrf("blue", 2001, "", "1:2001")
	for _, tt := range []struct {
		name string
		uses []Use
		// configured are VNI and route target.
		configured []string
		want       []string
	}{
		{"two tenants", []Use{red, blue, route("v1", 1001, "1:1001"), route("v2", 2001, "1:2001")}, nil, nil},
		{"another AS's automatic target", []Use{red, route("v1", 1001, "65001:1001"), route("v2", 1001, "65002:1001")}, nil, nil},
		{"more targets on some routes", []Use{red, route("v1", 1001, "1:1001 1:9"), route("v2", 1001, "1:9")}, nil, nil},
		{"one VNI, two tenants", []Use{red, route("v1", 1001, "1:7")}, nil, []string{"vni 1001 vni-collision"}},
		{"hub and spoke", []Use{vrf("hub", 1001, "1:2", "1:1"), route("v1", 1001, "1:1"), route("v2", 1001, "1:2")}, nil, nil},
		{"one VNI, two tenants elsewhere", []Use{red, route("v1", 5, "1:5"), route("v2", 5, "9:9")}, nil, []string{"vni 5 vni-collision"}},
		{"without a target nobody imports", []Use{red, route("v1", 1001, "")}, nil, nil},
		{"two import one target", []Use{vrf("a", 1, "1:9", "1:1"), vrf("b", 2, "1:9", "1:2")}, nil, []string{"route-target 1:9 route-target-shared"}},
		{"one of them by configuration", []Use{vrf("a", 1, "1:9", "1:1"), vrf("b", 2, "1:9", "1:2")}, []string{"2 1:9"}, nil},
		{"it is for another VRF", []Use{vrf("a", 1, "1:9", "1:1"), vrf("b", 2, "1:9", "1:2")}, []string{"3 1:9"}, []string{"route-target 1:9 route-target-shared"}},
		{"one exports what another imports", []Use{red, vrf("b", 2, "1:2", "1:2 1:1001")}, nil, []string{"route-target 1:1001 route-target-shared"}},
		{"by configuration", []Use{red, vrf("b", 2, "1:2", "1:2 1:1001")}, []string{"2 1:1001"}, nil},
		{"a route of another VNI comes in", []Use{red, route("v1", 7, "1:1001")}, nil, []string{"route-target 1:1001 route-target-shared"}},
		{"two export one target that nobody imports", []Use{red, route("v1", 7, "1:9"), route("v2", 8, "1:9")}, nil, nil},
		{"a target imported under an automatic number", []Use{red, vrf("b", 2, "3:1001", "1:2")}, nil, []string{"route-target 3:1001 route-target-shared"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range 3 {
				slices.Reverse(tt.uses)
				got := words(Check(tt.uses, nil, nil, func(vni intent.VNI, rt intent.RouteTarget) bool {
					return slices.Contains(tt.configured, fmt.Sprintf("%d %s", vni, rt))
				}))
				if !slices.Equal(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			}
		})
	}
}

func words(objects []status.Object) []string {
	var out []string
	for _, o := range objects {
		if o.State != status.Warning || o.Error == "" {
			panic(o)
		}
		out = append(out, fmt.Sprintf("%s %s %s", o.Kind, o.Key, o.Reason))
	}
	return out
}

func TestRouteDistinguishers(t *testing.T) {
	two := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}
	got := Check(nil, []RD{{"192.0.2.9:1", two}}, nil, nil)
	if w := words(got); !slices.Equal(w, []string{"route-distinguisher 192.0.2.9:1 route-distinguisher-shared"}) || !strings.Contains(got[0].Error, "192.0.2.1, 2001:db8::1") {
		t.Errorf("%q, %s", w, got[0].Error)
	}
}

// What a neighbour sends cannot make more reports than a person can read.
func TestReportsAreBounded(t *testing.T) {
	var uses []Use
	var list []RD
	for i := range 1000 {
		vni := intent.VNI(i + 1)
		uses = append(uses, route("v1", vni, fmt.Sprintf("1:%d", 5000+i)), route("v2", vni, fmt.Sprintf("2:%d", 9000+i)), vrf("a", vni, "1:1 1:2", fmt.Sprintf("3:%d", i)))
		list = append(list, RD{RD: fmt.Sprint(i)})
	}
	if n := len(Check(uses, list, nil, func(intent.VNI, intent.RouteTarget) bool { return false })); n > 3*mostObjects {
		t.Errorf("%d reports", n)
	}
}

// One VTEP of several nodes is warned of with a word about each; a neighbour may send many.
func TestVTEPsOfSeveralNodes(t *testing.T) {
	for _, a := range []string{"192.0.2.9", "2001:db8::9"} {
		vtep := VTEP{netip.MustParseAddr(a), []string{"router ID 192.0.2.1", "router ID 192.0.2.2"}}
		got := Check(nil, nil, []VTEP{vtep}, nil)
		if len(got) != 1 || got[0].Key != a || got[0].Reason != reason.SameVTEP || got[0].State != status.Warning ||
			!strings.Contains(got[0].Error, vtep.Nodes[0]) || !strings.Contains(got[0].Error, vtep.Nodes[1]) {
			t.Errorf("got %+v", got)
		}
		if n := len(Check(nil, nil, slices.Repeat([]VTEP{vtep}, 2*mostObjects), nil)); n != mostObjects {
			t.Errorf("%d objects of many", n)
		}
	}
}
