package bpf_test

import (
	"fmt"
	"path/filepath"
	"testing"

	kernel "github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Each test brings the pinned maps into the state that a kill between two
// writes leaves, and starts again.

// raw opens a pinned map past the driver.
func raw(t *testing.T, dir, name string) *kernel.Map {
	t.Helper()
	m, err := kernel.LoadPinnedMap(filepath.Join(dir, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// rowsOf copies a map.
func rowsOf(t *testing.T, m *kernel.Map) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	var k, v []byte
	it := m.Iterate()
	for it.Next(&k, &v) {
		out[string(k)] = append([]byte(nil), v...)
	}
	if err := it.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func putRaw(t *testing.T, m *kernel.Map, k, v []byte) {
	t.Helper()
	if err := m.Put(k, v); err != nil {
		t.Fatal(err)
	}
}

// gatewayRows are the keys of a gateway's rows in the map.
func gatewayRows(t *testing.T, m *kernel.Map, g intent.GatewayKey) (keys, values [][]byte) {
	t.Helper()
	for k, v := range rowsOf(t, m) {
		if k[4:10] == string(g.MAC[:]) && uint16(k[10])|uint16(k[11])<<8 == g.VLAN {
			keys, values = append(keys, []byte(k)), append(values, v)
		}
	}
	return keys, values
}

// The gateway is another VRF's, and the entry of the VRF before is still there:
// its routes must not lead to the gateway.
func TestCrashWhileGatewayChangesVRF(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	entries, names := raw(t, dir, "entries_v1"), raw(t, dir, "names_v1")
	entriesBefore, namesBefore := rowsOf(t, entries), rowsOf(t, names)
	moved := gateways()[gw]
	moved.VNI = blue
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: moved})
	stale := []row{
		{name: "4", in: fromFabric(in4("10.20.0.9", "10.10.0.5")), drop: drop.StaleRow},
		{name: "6", in: fromFabric(in6("fd00:20::9", "fd00:10::5")), drop: drop.StaleRow},
	}
	runRows(t, dir, d, stale)
	now := rowsOf(t, entries)
	for k := range namesBefore {
		if isZero(now[k]) {
			putRaw(t, entries, []byte(k), entriesBefore[k])
			putRaw(t, names, []byte(k), namesBefore[k])
		}
	}
	d.Close()
	runRows(t, dir, load(t, ebpf.Config{Dir: dir, Node: node()}), stale)
}

// The gateway is another VRF's, or none, and what is served behind it was not moved or
// removed yet. A pass removes it, also when its entry has lost its name.
func TestCrashBeforeServedRowsMove(t *testing.T) {
	for _, named := range []bool{true, false} {
		t.Run(fmt.Sprintf("named %t", named), func(t *testing.T) {
			dir := bpffs(t)
			d := world(t, dir, node())
			names, rows := raw(t, dir, "names_v1"), raw(t, dir, "served_v1")
			namesBefore, before := rowsOf(t, names), rowsOf(t, rows)
			moved := gateways()[gw]
			moved.VNI = blue
			apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: moved})
			namesAfter, after := rowsOf(t, names), rowsOf(t, rows)
			for k, v := range before {
				putRaw(t, rows, []byte(k), v)
			}
			for k, v := range namesBefore {
				if named {
					putRaw(t, names, []byte(k), v)
				}
			}
			d.Close()
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			want := served()
			var gone []intent.ServedKey
			for k := range list(t, d.Served()) {
				if _, ok := want[k]; !ok {
					gone = append(gone, k)
				}
			}
			if len(gone) == 0 {
				t.Error("what was left behind is not listed")
			}
			for _, err := range d.Served().Delete(t.Context(), gone) {
				t.Error(err)
			}
			wantList(t, d.Served(), want)
			wantRows(t, names, namesAfter)
			wantRows(t, rows, after)
		})
	}
}

// wantRows compares the keys of a map.
func wantRows(t *testing.T, m *kernel.Map, want map[string][]byte) {
	t.Helper()
	got := rowsOf(t, m)
	for k := range got {
		if _, ok := want[k]; !ok {
			t.Errorf("%s: the row %x is left", m, k)
		}
	}
	if len(got) < len(want) {
		t.Errorf("%s has %d rows, want %d", m, len(got), len(want))
	}
}

func isZero(b []byte) bool {
	for _, x := range b {
		if x != 0 {
			return false
		}
	}
	return true
}

// The gateway has a row for the device that its bridge had before, too.
func TestCrashWhileDeviceChanges(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	m := raw(t, dir, "gateways_v1")
	keys, values := gatewayRows(t, m, gw)
	for old := byte(100); old < 116; old++ { // the map is walked in the order of a hash: one of them comes last
		k := append([]byte(nil), keys[0]...)
		k[0] = old
		putRaw(t, m, k, values[0])
	}
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node()})
	if keys, _ := gatewayRows(t, m, gw); len(keys) != 1 || keys[0][0] != lo {
		t.Errorf("the gateway has the rows %x", keys)
	}
	wantWorld(t, d)
	remove(t, d.Routes(), worldRoutes())
	remove(t, d.Served(), served())
	remove(t, d.Gateways(), gateways())
	wantList(t, d.Gateways(), nil)
	for _, f := range d.Fills() {
		if (f.Map == "entries" || f.Map == "gateways") && f.Used != 0 {
			t.Errorf("%s still has %d rows", f.Map, f.Used)
		}
	}
}

// The entry has the new device, the gateway's only row has the old one.
func TestCrashBeforeGatewayHasItsDevice(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	m := raw(t, dir, "gateways_v1")
	keys, values := gatewayRows(t, m, gw)
	old := append([]byte(nil), keys[0]...)
	old[0] = 100
	putRaw(t, m, old, values[0])
	if err := m.Delete(keys[0]); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node()})
	wantWorld(t, d)
	runRows(t, dir, d, []row{{name: "from OVN", in: fromOVN(out4("10.10.0.5", "10.20.0.9")), out: vxlan}})
	if keys, _ := gatewayRows(t, m, gw); len(keys) != 1 || keys[0][0] != lo {
		t.Errorf("the gateway has the rows %x", keys)
	}
}

// The gateway that speaks for its VRF was cleared; another one has to take over.
func TestCrashBeforeAnotherSpeaks(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	speakers := raw(t, dir, "speakers_v1")
	k := []byte{byte(red & 0xff), byte(red >> 8), 0, 0}
	before := rowsOf(t, speakers)[string(k)]
	for _, g := range []intent.GatewayKey{gw, gw2} {
		if _, v := gatewayRows(t, raw(t, dir, "gateways_v1"), g); v[0][0] == before[0] {
			if errs := d.Gateways().Delete(t.Context(), []intent.GatewayKey{g}); errs != nil {
				t.Fatal(errs)
			}
		}
	}
	putRaw(t, speakers, k, before)
	d.Close()
	d = load(t, ebpf.Config{Dir: dir, Node: node()})
	runRows(t, dir, d, []row{{name: "no route", in: fromFabric(in4("10.20.0.9", "10.99.0.1")), drop: drop.NoRoute, out: vxlan}})
}
