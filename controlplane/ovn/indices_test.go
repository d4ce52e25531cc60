package ovn

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// storedTypes are the rows of all tables that Rows keep.
var storedTypes = []Row{
	PortBinding{}, DatapathBinding{}, Chassis{}, ChassisPrivate{}, HAChassis{}, HAChassisGroup{}, MACBinding{}, AdvertisedRoute{},
	OpenvSwitch{}, Bridge{}, Port{}, SSL{}, Interface{}, LogicalRouter{}, LogicalRouterPort{}, NAT{}, StaticRoute{}, LogicalSwitch{},
	LogicalSwitchPort{}, DHCPOptions{}, ACL{}, PortGroup{}, AddressSet{}, NBGlobal{}, LoadBalancer{}, LoadBalancerGroup{}, HealthCheck{},
	ServiceMonitor{}, TemplateVar{}, DatapathGroup{}, SBGlobal{},
}

// Whatever rows were before, the indices are those of the rows that there are.
func TestIndicesAreOfTheRows(t *testing.T) {
	filled := map[string]int{}
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		store := func() *Rows {
			r := NewRows()
			r.Expose(true)
			r.FollowVMs(true)
			r.FollowACLs(true)
			r.FollowClients(true)
			r.BalanceBySouthbound(seed%2 == 1)
			return r
		}
		kept, now := store(), map[UUID]Change{}
		for range 100 {
			row := reflect.New(reflect.TypeOf(storedTypes[rnd.IntN(len(storedTypes))])).Elem()
			randomly(rnd, row, "")
			id := UUID(row.Type().Name() + " " + row.FieldByName("UUID").String())
			row.FieldByName("UUID").SetString(string(id))
			c := Set(row.Interface().(Row))
			if rnd.IntN(3) == 0 {
				c = Delete(c.Table, id)
			}
			kept.Apply([]Change{c})
			now[id] = c
		}
		fresh := store()
		fresh.Apply(slices.Collect(maps.Values(now)))
		want, got := indicesOf(reflect.ValueOf(*fresh)), indicesOf(reflect.ValueOf(*kept))
		for name := range got {
			filled[name] += len(want[name])
			if !maps.Equal(want[name], got[name]) {
				t.Errorf("seed %d: %s is\n%v\nand the rows say\n%v", seed, name, got[name], want[name])
			}
		}
	}
	for name, n := range filled {
		if n == 0 {
			t.Errorf("%s never had an entry", name)
		}
	}
}

// indicesOf are those of a store, and of the stores in it, as text: values by key.
func indicesOf(store reflect.Value) map[string]map[string]string {
	out := map[string]map[string]string{}
	for i := range store.NumField() {
		name, field := store.Type().Field(i).Name, store.Field(i)
		switch {
		case field.Kind() == reflect.Struct:
			maps.Copy(out, indicesOf(field))
		case field.Kind() == reflect.Map && strings.Contains(field.Type().Elem().String(), "multimap.Set"):
			out[name] = map[string]string{}
			for it := field.MapRange(); it.Next(); {
				values := []string{fmt.Sprint(it.Value().FieldByName("one"))}
				if more := it.Value().FieldByName("more"); !more.IsNil() {
					values = nil
					for _, v := range more.MapKeys() {
						values = append(values, fmt.Sprint(v))
					}
				}
				slices.Sort(values)
				out[name][fmt.Sprint(it.Key())] = strings.Join(values, ", ")
			}
		}
	}
	return out
}

// randomly fills a row so that rows refer to each other.
func randomly(rnd *rand.Rand, v reflect.Value, field string) {
	one := func(of ...string) string { return of[rnd.IntN(len(of))] }
	switch v.Interface().(type) {
	case netip.Addr:
		v.Set(reflect.ValueOf(netip.MustParseAddr(one("10.0.0.1", "10.0.0.2"))))
		return
	case map[string]string:
		m := map[string]string{}
		for _, k := range []string{"peer", "logical-router", "logical-switch", "network_name", "template"} {
			m[k] = one("a", "b", "true")
		}
		m[keyDeviceID] = one(metadataOwner+"a", "a")
		v.Set(reflect.ValueOf(m))
		return
	}
	switch v.Kind() {
	case reflect.String:
		switch field {
		case "Type":
			v.SetString(one(TypeVIF, TypeVirtual, TypePatch, TypeL3Gateway, TypeChassisRedirect, TypeLocalnet, TypeLocalport))
		case "Match":
			v.SetString(one("ip4.dst == $a", "ip4.dst == {$a, $b}", "ip4"))
		case "IP":
			v.SetString(one("10.0.0.1", "10.0.0.2"))
		default:
			v.SetString(one("a", "b", "DatapathBinding a", "Chassis a", "LogicalRouter a", "LoadBalancer a", ""))
		}
	case reflect.Bool:
		v.SetBool(rnd.IntN(2) == 0)
	case reflect.Int:
		v.SetInt(int64(rnd.IntN(3)))
	case reflect.Uint16, reflect.Uint32:
		v.SetUint(uint64(rnd.IntN(3)))
	case reflect.Slice: // a set of the database: sorted, each value once
		all := map[string]reflect.Value{}
		for range rnd.IntN(4) {
			e := reflect.New(v.Type().Elem()).Elem()
			randomly(rnd, e, field)
			all[fmt.Sprint(e)] = e
		}
		for _, text := range slices.Sorted(maps.Keys(all)) {
			v.Set(reflect.Append(v, all[text]))
		}
	case reflect.Map:
		m := reflect.MakeMap(v.Type())
		k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		randomly(rnd, k, field)
		randomly(rnd, e, field)
		m.SetMapIndex(k, e)
		v.Set(m)
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Name != "Revision" {
				randomly(rnd, v.Field(i), f.Name)
			}
		}
	}
}
