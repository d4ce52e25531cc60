package bpf_test

import (
	"encoding/binary"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// A route may lead to a row that is another VRF's by now: the row was freed and
// taken again under the hands of a running program. What says whose a row is, is
// the row.

// offsetOwner is where a row of nexthops, groups and entries has its VNI.
const offsetOwner = 0

// owned makes all of red's rows of a map blue's, and gives back how to undo it.
func (w rawMap) owned(match func(v []byte) bool) (undo func()) {
	w.t.Helper()
	m := raw(w.t, w.dir, w.name)
	var keys []string
	before := rowsOf(w.t, m)
	for k, v := range before {
		if binary.NativeEndian.Uint32(v[offsetOwner:]) != uint32(red) || match != nil && !match(v) {
			continue
		}
		keys = append(keys, k)
		other := append([]byte(nil), v...)
		binary.NativeEndian.PutUint32(other[offsetOwner:], uint32(blue))
		putRaw(w.t, m, []byte(k), other)
	}
	if len(keys) == 0 {
		w.t.Fatalf("%s has no row of red's", w.name)
	}
	return func() {
		for _, k := range keys {
			putRaw(w.t, m, []byte(k), before[k])
		}
	}
}

type rawMap struct {
	t         *testing.T
	dir, name string
}

func TestRowOfAnotherVRF(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	for _, c := range []struct {
		name, table string
		match       func([]byte) bool
		rows        []row
	}{
		{"next hop", "nexthops_v1", nil, []row{
			{name: "4", in: fromOVN(out4("10.10.0.5", "10.20.0.9")), drop: drop.StaleRow},
			{name: "6", in: fromOVN(out6("fd00:10::5", "fd00:20::9")), drop: drop.StaleRow},
			{name: "member of a group", in: fromOVN(out4("10.10.0.5", "10.21.0.9")), drop: drop.StaleRow},
		}},
		{"group", "groups_v1", nil, []row{
			{name: "4", in: fromOVN(out4("10.10.0.5", "10.21.0.9")), drop: drop.StaleRow},
			{name: "a single next hop goes on", in: fromOVN(out4("10.10.0.5", "10.20.0.9")), out: vxlan},
		}},
		{"entry", "entries_v1", isMAC(gw2MAC), []row{
			{name: "from the fabric 4", in: fromFabric(in4("10.20.0.9", "10.11.0.5")), drop: drop.StaleRow},
			{name: "from the fabric 6", in: fromFabric(in6("fd00:20::9", "fd00:11::5")), drop: drop.StaleRow},
			{name: "from another gateway", in: fromOVN(out4("10.10.0.5", "10.11.0.5")), drop: drop.StaleRow},
		}},
		{"entry of the sender", "entries_v1", isMAC(gwMAC), []row{
			{name: "4", in: fromOVN(out4("10.10.0.5", "10.20.0.9")), drop: drop.StaleRow},
			{name: "6", in: fromOVN(out6("fd00:10::5", "fd00:20::9")), drop: drop.StaleRow},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			undo := rawMap{t, dir, c.table}.owned(c.match)
			runRows(t, dir, d, c.rows)
			undo()
			for i, r := range c.rows {
				c.rows[i] = row{name: r.name + ", its own again", in: r.in, out: back(r)}
			}
			runRows(t, dir, d, c.rows)
		})
	}
}

// isMAC picks the entry of a gateway.
func isMAC(m intent.MAC) func([]byte) bool {
	const offsetMAC = 8
	return func(v []byte) bool { return intent.MAC(v[offsetMAC:offsetMAC+6]) == m }
}

// back is the device that the packet of a row goes out of when all is well.
func back(r row) uint32 {
	switch dst := decode(r.in.Frame).NetworkLayer().NetworkFlow().Dst().String(); dst {
	case "10.11.0.5", "fd00:11::5":
		return sluice
	}
	return vxlan
}
