package evpn

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// What another translation is told of the tenants here.
func TestTenantsAreTold(t *testing.T) {
	x := NewTranslator(Config{}, indices{})
	rows := node(false).tenant(1, 1001).load()
	x.Step(rows, ovn.Dirty{All: true}, true)
	key := intent.GatewayKey{Bridge: "br-ex", MAC: intent.MAC{2, 0, 0, 0, 0, 1}}
	if vni, ok := x.GatewayVRF(key); !ok || vni != 1001 {
		t.Errorf("the gateway port is of VRF %s, %v", vni, ok)
	}
	match := x.Match(1001)
	for a, want := range map[string]string{"10.10.0.5": "10.10.0.5/32", "10.10.0.99": "10.10.0.0/24", "172.24.4.1": "172.24.4.1/32", "172.24.4.60": "", "2001:db8:10::5": "2001:db8:10::5/128", "2001:db8:10::9": "2001:db8:10::/64"} {
		r, ok := match(netip.MustParseAddr(a))
		if ok != (want != "") || ok && (r.Key.Prefix.String() != want || r.Kind != intent.RouteLocal || r.Gateway != key) {
			t.Errorf("%s matches %+v, %v, want %s", a, r, ok, want)
		}
	}
	if _, ok := x.Match(7)(netip.MustParseAddr("10.10.0.5")); ok {
		t.Error("a VRF that nobody has matches")
	}
	other := key
	other.VLAN = 7
	if _, ok := x.GatewayVRF(other); ok {
		t.Error("a key that nobody has is a tenant's")
	}
	if !x.HasBridge("br-ex") || x.HasBridge("br-two") {
		t.Error("bridges")
	}
}

// A row that goes from one translation to the other changes, and never goes.
func TestMerge(t *testing.T) {
	of := func(vni intent.VNI, keys ...byte) map[intent.GatewayKey]intent.Gateway {
		m := map[intent.GatewayKey]intent.Gateway{}
		for _, k := range keys {
			key := intent.GatewayKey{MAC: intent.MAC{5: k}}
			m[key] = intent.Gateway{Key: key, VNI: vni}
		}
		return m
	}
	gone := func(keys ...byte) (out []intent.GatewayKey) {
		for _, k := range keys {
			out = append(out, intent.GatewayKey{MAC: intent.MAC{5: k}})
		}
		return out
	}
	type delta = wanted.Delta[intent.GatewayKey, intent.Gateway]
	tenants := Difference{Gateways: delta{Set: of(1001, 1, 2), Delete: gone(3, 4)}}
	got := tenants.Merge(Difference{Gateways: delta{Set: of(intent.DefaultVRF, 3, 5), Delete: gone(1, 6)}}).Gateways
	for k, vni := range map[byte]intent.VNI{1: 1001, 2: 1001, 3: intent.DefaultVRF, 5: intent.DefaultVRF} {
		if got.Set[gone(k)[0]].VNI != vni {
			t.Errorf("row %d is of %s", k, got.Set[gone(k)[0]].VNI)
		}
	}
	if len(got.Set) != 4 || !slices.Equal(got.Delete, gone(4, 6)) {
		t.Errorf("set %v, deleted %v", got.Set, got.Delete)
	}
	if d := tenants.Merge(Difference{}); len(d.Gateways.Set) != 2 || len(d.Gateways.Delete) != 2 {
		t.Errorf("with nothing: %+v", d)
	}
	all := Tables{Gateways: of(1001, 1)}
	if all.Merge(Tables{Gateways: of(intent.DefaultVRF, 1, 2)}); len(all.Gateways) != 2 || all.Gateways[gone(1)[0]].VNI != 1001 {
		t.Errorf("tables %v", all.Gateways)
	}
}

// Nothing that is done with all tables leaves one out: rows of it would get nowhere.
func TestEveryTableIsTaken(t *testing.T) {
	fields := reflect.TypeFor[Difference]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		one := NewTables()
		table := reflect.ValueOf(one).FieldByName(name)
		table.SetMapIndex(reflect.Zero(table.Type().Key()), reflect.Zero(table.Type().Elem()))
		d := Diff(NewTables(), one)
		if d.Empty() {
			t.Errorf("Diff or Empty leaves %s out", name)
		}
		for when, merged := range map[string]Difference{"into": Difference{}.Merge(d), "from": d.Merge(Difference{})} {
			if reflect.ValueOf(merged).FieldByName(name).FieldByName("Set").Len() != 1 {
				t.Errorf("Difference.Merge %s leaves %s out", when, name)
			}
		}
		all := NewTables()
		if all.Merge(one); reflect.ValueOf(all).FieldByName(name).Len() != 1 {
			t.Errorf("Tables.Merge leaves %s out", name)
		}
		// Bridges are counted apart.
		if packed := one.pack().tables(); name != "Bridges" && reflect.ValueOf(packed).FieldByName(name).Len() != 1 {
			t.Errorf("pack leaves %s out", name)
		}
	}
	if n := reflect.TypeFor[Tables]().NumField(); n != fields.NumField() {
		t.Errorf("%d tables, and differences of %d", n, fields.NumField())
	}
}
