package ebpf

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// MapLayout is what a pinned map looks like, as this build makes it.
type MapLayout struct {
	// Name is that of the pin, with the version of the layout: hosts_v1.
	Name string
	// Type is hash, array ….
	Type string
	// Key and Value are the C types, empty for a map that has none; the sizes are
	// in bytes.
	Key, Value         string
	KeySize, ValueSize uint32
	// Rows is the number of rows; bytes for a ring buffer.
	Rows uint32
	// Limits are the fields of Limits that change Rows.
	Limits []string
}

// Layout lists the pinned maps by name. Fields of limits that are 0 mean the default.
func Layout(limits Limits) ([]MapLayout, error) {
	specs, err := mapSpecs(limits.withDefaults())
	if err != nil {
		return nil, err
	}
	sized := sizedBy()
	out := make([]MapLayout, 0, len(specs))
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		m := specs[name]
		out = append(out, MapLayout{
			Name: name, Type: typeWord(m.Type), Key: cType(m.Key), Value: cType(m.Value),
			KeySize: m.KeySize, ValueSize: m.ValueSize, Rows: m.MaxEntries, Limits: sized[name],
		})
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

func typeWord(t ebpf.MapType) string {
	words := map[ebpf.MapType]string{
		ebpf.Hash: "hash", ebpf.Array: "array", ebpf.PerCPUArray: "array per CPU", ebpf.LPMTrie: "longest-prefix trie", ebpf.RingBuf: "ring buffer",
	}
	return cmp.Or(words[t], strings.ToLower(t.String()))
}

// cType is how C names a type.
func cType(t btf.Type) string {
	switch t := t.(type) {
	case nil, *btf.Void:
		return ""
	case *btf.Struct:
		return "struct " + t.Name
	}
	return t.TypeName()
}
