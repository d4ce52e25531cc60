package pinned

import (
	"cmp"
	"maps"
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
	// Limits are the settings that change Rows.
	Limits []string
}

// Layout lists maps by name.
func Layout(specs map[string]*ebpf.MapSpec) []MapLayout {
	out := make([]MapLayout, 0, len(specs))
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		m := specs[name]
		out = append(out, MapLayout{
			Name: name, Type: typeWord(m.Type), Key: cType(m.Key), Value: cType(m.Value),
			KeySize: m.KeySize, ValueSize: m.ValueSize, Rows: m.MaxEntries,
		})
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
