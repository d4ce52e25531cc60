package wanted

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func gatewaysOf(vni intent.VNI, keys ...byte) map[intent.GatewayKey]intent.Gateway {
	m := map[intent.GatewayKey]intent.Gateway{}
	for _, k := range gatewayKeys(keys...) {
		m[k] = intent.Gateway{Key: k, VNI: vni}
	}
	return m
}

func gatewayKeys(keys ...byte) (out []intent.GatewayKey) {
	for _, k := range keys {
		out = append(out, intent.GatewayKey{MAC: intent.MAC{5: k}})
	}
	return out
}

type gateways = Delta[intent.GatewayKey, intent.Gateway]

// A row that goes from one translation to the other changes, and is never deleted.
func TestMerge(t *testing.T) {
	tenants := With(Difference{}, intent.Gateways, gateways{Set: gatewaysOf(1001, 1, 2), Delete: gatewayKeys(3, 4)})
	got := Of(tenants.Merge(With(Difference{}, intent.Gateways, gateways{Set: gatewaysOf(intent.DefaultVRF, 3, 5), Delete: gatewayKeys(1, 6)})), intent.Gateways)
	for k, vni := range map[byte]intent.VNI{1: 1001, 2: 1001, 3: intent.DefaultVRF, 5: intent.DefaultVRF} {
		if row := got.Set[gatewayKeys(k)[0]]; row.VNI != vni {
			t.Errorf("row %d is of %s", k, row.VNI)
		}
	}
	if len(got.Set) != 4 || !slices.Equal(got.Delete, gatewayKeys(4, 6)) {
		t.Errorf("set %v, deleted %v", got.Set, got.Delete)
	}
	for what, d := range map[string]Difference{"after": tenants.Merge(Difference{}), "before": Difference{}.Merge(tenants)} {
		if of := Of(d, intent.Gateways); len(of.Set) != 2 || len(of.Delete) != 2 {
			t.Errorf("nothing %s it: %+v", what, of)
		}
	}
	all := NewSet()
	all.Apply(With(Difference{}, intent.Gateways, gateways{Set: gatewaysOf(1001, 1)}))
	other := NewSet()
	other.Apply(With(Difference{}, intent.Gateways, gateways{Set: gatewaysOf(intent.DefaultVRF, 1, 2)}))
	if all.Merge(other); len(Rows(all, intent.Gateways)) != 2 || Rows(all, intent.Gateways)[gatewayKeys(1)[0]].VNI != 1001 {
		t.Errorf("%v", Rows(all, intent.Gateways))
	}
}

// A difference made of two sets makes the one the other, whatever tables each has; so does one
// that was packed.
func TestDiff(t *testing.T) {
	names := &intent.Table[string, string]{Name: "names", Kind: "name", Key: func(v string) string { return v[:1] }}
	set := func(vni intent.VNI, keys []byte, words ...string) Set {
		s := NewSet()
		for _, g := range gatewaysOf(vni, keys...) {
			Put(s, intent.Gateways, g)
		}
		for _, w := range words {
			Put(s, names, w)
		}
		return s
	}
	same := func(a, b Set) bool {
		return maps.Equal(Rows(a, intent.Gateways), Rows(b, intent.Gateways)) && maps.Equal(Rows(a, names), Rows(b, names))
	}
	states := []Set{NewSet(), set(1, []byte{1, 2}), set(1, []byte{2, 3}, "a1", "b1"), set(2, []byte{2}), set(0, nil, "a2")}
	for i, from := range states {
		for j, to := range states {
			d := Diff(from, to)
			if d.Empty() != (i == j) {
				t.Errorf("%d to %d: empty %t", i, j, d.Empty())
			}
			got := from.Pack().Set()
			if got.Apply(d); !same(got, to) {
				t.Errorf("%d to %d: %v", i, j, got)
			}
		}
		if !same(from.Pack().Set(), from) || len(List(from.Pack(), names)) != len(Rows(from, names)) {
			t.Errorf("%d is packed as %v", i, from.Pack())
		}
	}
}

// Two steps in one are the one after the other.
func TestThen(t *testing.T) {
	names := &intent.Table[string, string]{Name: "names", Kind: "name", Key: func(v string) string { return v[:1] }}
	rnd := rand.New(rand.NewPCG(1, 1))
	step := func() (d Delta[string, string]) {
		for _, k := range []string{"a", "b", "c", "d"} {
			switch rnd.IntN(4) {
			case 0:
				d.Delete = append(d.Delete, k)
			case 1:
				if d.Set == nil {
					d.Set = map[string]string{}
				}
				d.Set[k] = k + string(rune('0'+rnd.IntN(3)))
			}
		}
		return d
	}
	with := func(before Delta[string, string], steps ...Delta[string, string]) map[string]string {
		s := NewSet()
		for _, d := range append([]Delta[string, string]{before}, steps...) {
			s.Apply(With(Difference{}, names, d))
		}
		return Rows(s, names)
	}
	for range 2000 {
		before, first, second := step(), step(), step()
		one, two := with(before, first.Then(second)), with(before, first, second)
		if !maps.Equal(one, two) {
			t.Fatalf("%v, then %v, then %v: %v, and as one %v", before, first, second, two, one)
		}
	}
}
