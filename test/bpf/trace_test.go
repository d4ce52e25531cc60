package bpf_test

import (
	"context"
	"crypto/sha256"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
)

var isMap = regexp.MustCompile(`_v\d+$`)

// digest sums the content of every pinned map but the scratch map.
func digest(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][32]byte{}
	for _, e := range entries {
		name := e.Name()
		if !isMap.MatchString(name) || strings.HasPrefix(name, "trace_") || strings.HasPrefix(name, "samples_") {
			continue
		}
		m, err := ebpf.LoadPinnedMap(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		h := sha256.New()
		var key []byte
		it := m.Iterate()
		if m.Type() == ebpf.PerCPUArray {
			var values [][]byte
			for it.Next(&key, &values) {
				h.Write(key)
				for _, v := range values {
					h.Write(v)
				}
			}
		} else {
			var value []byte
			for it.Next(&key, &value) {
				h.Write(key)
				h.Write(value)
			}
		}
		if err := it.Err(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = [32]byte(h.Sum(nil))
	}
	return out
}

// A thousand traces of every kind leave every map but the scratch map as it was.
func TestTraceChangesNothing(t *testing.T) {
	dir := bpffs(t)
	defaultWorld(t, dir)
	tr := tracer(t, dir)
	before := digest(t, dir)
	if len(before) < 16 {
		t.Fatalf("only %d maps", len(before))
	}
	packets := []sluiceebpf.TraceRequest{
		fromFabric(in4("10.20.0.9", "10.10.0.5")), fromFabric(in6("fd00:20::9", "fd00:77::5")),
		fromFabric(ttl(in4("10.20.0.9", "10.10.0.5"), 1)), via(fromFabric(in4("10.20.0.9", "10.10.0.5")), peer4b, red),
		fromOVN(out4("10.10.0.5", "10.20.0.9")), fromOVN(out4("10.99.0.5", "10.20.0.9")), fromOVN(out6("fd00:10::5", "fd00:77::9")),
		fromOVN(arp("172.24.4.10", "172.24.4.1", 1)), fromOVN(solicit("2001:db8:24::10", "ff02::1:ff00:1", "2001:db8:24::1", 255)),
		fromOVN(out4("10.10.0.5", "10.21.0.9")), fromUnderlay(under4("198.51.100.1", "203.0.113.5")),
		fromUnderlay(ttl(under6("2001:db8:9::1", "2001:db8:113::5"), 1)), fromUnderlay(under4("198.51.100.1", "192.0.2.7")),
		fromOVN(vmOut4("203.0.113.5", "198.51.100.1")), fromOVN(vmOut6("2001:db8:113::5", "2001:db8:113::77")),
	}
	for i := range 1000 {
		res, err := tr.Trace(context.Background(), packets[i%len(packets)])
		if err != nil {
			t.Fatal(err)
		}
		if len(res.Steps) == 0 {
			t.Fatal("a trace without steps")
		}
	}
	if after := digest(t, dir); !maps.Equal(before, after) {
		for name := range after {
			if before[name] != after[name] {
				t.Errorf("map %s changed", name)
			}
		}
	}
	// A real packet does change them, so the comparison can fail.
	if _, _, _, err := tr.Run(packets[0], 1); err != nil {
		t.Fatal(err)
	}
	if maps.Equal(before, digest(t, dir)) {
		t.Error("a real packet left no trace in the counters")
	}
}

// labelOf is the VNI of the next hop that a packet was given, 0 without one.
func labelOf(res sluiceebpf.TraceResult) (label uint32) {
	for _, s := range res.Steps {
		if s.What == sluiceebpf.StepNextHop {
			label = s.Value
		}
	}
	return label
}
