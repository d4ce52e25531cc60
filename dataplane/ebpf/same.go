package ebpf

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// sameProgram tells whether two loaded programs do the same: equal instructions
// (their tag), the same maps, equal constants.
func sameProgram(a, b *ebpf.Program) bool {
	ia, err := a.Info()
	if err != nil {
		return false
	}
	ib, err := b.Info()
	if err != nil || ia.Tag != ib.Tag {
		return false
	}
	mapsA, constA, ok := programMaps(ia)
	if !ok {
		return false
	}
	mapsB, constB, ok := programMaps(ib)
	return ok && slices.Equal(mapsA, mapsB) && bytes.Equal(constA, constB)
}

// programMaps gives the ids of a program's maps, and the content of its constants.
func programMaps(info *ebpf.ProgramInfo) (ids []ebpf.MapID, constants []byte, ok bool) {
	all, ok := info.MapIDs()
	if !ok {
		return nil, nil, false
	}
	for _, id := range all {
		rodata, content, err := readConstants(id)
		if err != nil {
			return nil, nil, false
		}
		if rodata {
			constants = append(constants, content...)
		} else {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, constants, true
}

func readConstants(id ebpf.MapID) (rodata bool, content []byte, err error) {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return false, nil, err
	}
	defer m.Close()
	info, err := m.Info()
	if err != nil || !strings.HasSuffix(info.Name, ".rodata") {
		return false, nil, err
	}
	err = m.Lookup(uint32(0), &content)
	return true, content, err
}

// constantsOf is the content that a program's constants will have.
func constantsOf(spec *ebpf.CollectionSpec) []byte {
	const section = ".rodata"
	m := spec.Maps[section]
	if m == nil || len(m.Contents) != 1 {
		return nil
	}
	b, _ := m.Contents[0].Value.([]byte)
	b = slices.Clone(b)
	for _, v := range spec.Variables {
		if v.SectionName == section && int(v.Offset)+len(v.Value) <= len(b) {
			copy(b[v.Offset:], v.Value)
		}
	}
	return b
}
