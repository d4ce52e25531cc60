package ebpf

import (
	"reflect"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// MapLayout is what a pinned map looks like, as this build makes it. Its Limits are
// fields of Limits.
type MapLayout = pinned.MapLayout

// Layout lists the pinned maps by name. Fields of limits that are 0 mean the default.
func Layout(limits Limits) ([]MapLayout, error) {
	specs, err := mapSpecs(limits.withDefaults())
	if err != nil {
		return nil, err
	}
	out, sized := pinned.Layout(specs), sizedBy()
	for i := range out {
		out[i].Limits = sized[out[i].Name]
	}
	return out, nil
}

// sizedBy finds the limits that each map's size follows from, by changing one at
// a time.
func sizedBy() map[string][]string {
	out := map[string][]string{}
	usual := DefaultLimits().sizes()
	fields := reflect.TypeFor[Limits]()
	for i := range fields.NumField() {
		l := DefaultLimits()
		field := reflect.ValueOf(&l).Elem().Field(i)
		field.SetUint(4 * field.Uint())
		for name, n := range l.sizes() {
			if n != usual[name] {
				out[name] = append(out[name], fields.Field(i).Name)
			}
		}
	}
	return out
}
