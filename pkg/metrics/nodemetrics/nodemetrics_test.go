package nodemetrics

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// filled is a registry with one value of every metric.
func filled(failed func(string, error)) *Metrics {
	m := New("v1", failed)
	r := status.NewRegistry(slog.New(slog.DiscardHandler))
	r.SetCondition("sb", true, "in-sync", "")
	r.Reporter("evpn").Set(status.Object{Kind: "vrf", Key: "a", State: status.Error, Reason: "bad-vni"})
	m.AddStatus(r)
	m.AddTraffic(func() ([]VRFTraffic, error) { return []VRFTraffic{{VNI: 1001, ToFabricPackets: 3}}, nil })
	m.AddLoadBalancing(func() (LoadBalancing, error) {
		some := Balanced{ToBackendsPackets: 4, ToClientsBytes: 500, Flows: 2}
		return LoadBalancing{Evictions: []Evictions{{Table: "vips", Evicting: true, Translated: 7}}, VIPs: []VIPTraffic{{VNI: 1001, VIP: "[2001:db8::10]:80", Protocol: "tcp", Balanced: some, Known: 1}},
			Backends: []BackendTraffic{{VNI: 1001, Backend: "[2001:db8::1]:8080", Protocol: "tcp", Balanced: some}}}, nil
	})
	m.AddDrain([]string{"serving", "drained"}, func() string { return "serving" })
	m.AddPaths(func() ([]Path, error) { return []Path{{Path: "kernel", Reason: "map-full", VRFs: 2}}, nil })
	m.AddMachines(func() ([]Machines, error) { return []Machines{{Path: "ovn", Reason: "acl", Count: 2}}, nil })
	m.AddImports(func() ([]VRFImports, error) {
		return []VRFImports{{VNI: 1001, Imported: 3, Refused: map[string]uint64{"filtered": 1}}}, nil
	})
	m.AddDrops(func() (Drops, error) { return Drops{ByReason: map[string]uint64{"no-route": 5}}, nil })
	m.AddDevices(func() (Devices, error) {
		return Devices{Drops: []DeviceDrops{{Device: "sluice-vxlan", Direction: "rx", Kind: "errors", Packets: 2}}, PathMTUs: map[netip.Addr]int{netip.MustParseAddr("192.0.2.1"): 1400}}, nil
	})
	m.AddTables(func() ([]Table, error) { return []Table{{Name: "routes", Wanted: 2}}, nil })
	m.AddMaps(func() ([]Map, error) {
		return []Map{{Name: "known", Table: "served", Used: 3, Size: 10}, {Name: "served", Table: "served", Used: 7, Size: 10}}, nil
	})
	m.AddBGP(func() (BGP, error) {
		return BGP{Neighbors: []Neighbor{{Address: netip.MustParseAddr("2001:db8::1"), ASN: 65000, Up: true, Established: time.Now()}}, Rejected: map[string]uint64{"own-vtep": 1}}, nil
	})
	m.AddSteered(func() (map[string]uint64, error) { return map[string]uint64{"steered4": 2}, nil })
	m.AddUnderlay(func() (Underlay, error) {
		return Underlay{Installed: 2, Hops: 3, Refused: map[string]int{"connected": 1}}, nil
	})
	m.AddBFD(func() (BFD, error) {
		return BFD{Sessions: []BFDSession{{Neighbor: netip.MustParseAddr("fe80::1%eth0"), Up: true}}, Drops: map[string]uint64{"ttl": 1}}, nil
	})
	m.AddDatabases(func() ([]Database, error) {
		return []Database{{Name: "sb", Connected: true, Rows: 3}}, nil
	})
	m.ObservePass(time.Millisecond)
	m.ObserveAnnounceDelay(time.Millisecond)
	return m
}

func gather(t *testing.T, m *Metrics) map[string]string {
	t.Helper()
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "sluice_") {
			out[f.GetName()] = strings.ToLower(f.GetType().String())
		}
	}
	return out
}

func TestServedIsDeclared(t *testing.T) {
	want := map[string]string{}
	for _, m := range List() {
		want[m.Name] = string(m.Type)
	}
	failed := func(c string, err error) { t.Errorf("%s: %v", c, err) }
	got := gather(t, filled(failed))
	m := NewMetadata("v1", failed)
	m.AddMetadata(func() (Metadata, error) {
		return Metadata{Requests: map[string]uint64{"answered": 3}, Serving: 2, Heartbeat: time.Now()}, nil
	})
	m.ObserveMetadata(time.Millisecond)
	maps.Copy(got, gather(t, m))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestDeclarations(t *testing.T) {
	if err := List().Check(); err != nil {
		t.Error(err)
	}
}

// Rules for Prometheus know the metrics by their names, and their labels.
func TestRulesAreOfMetrics(t *testing.T) {
	rules, err := os.ReadFile("../../../deploy/prometheus/sluice.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../../../deploy/prometheus/sluice.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, m := range List() {
		labels[m.Name] = m.Labels
	}
	for _, name := range regexp.MustCompile(`\bsluice_[a-z0-9_]+`).FindAllString(string(rules), -1) {
		if _, ok := labels[name]; !ok {
			t.Errorf("there is no metric %s", name)
		}
	}
	series := regexp.MustCompile(`series: '(sluice_[a-z0-9_]+)\{(.*)\}'`).FindAllStringSubmatch(string(tests), -1)
	if len(series) == 0 {
		t.Error("no series")
	}
	for _, s := range series {
		for _, l := range regexp.MustCompile(`([a-z]+)="`).FindAllStringSubmatch(s[2], -1) {
			if target := []string{"instance", "job"}; !slices.Contains(append(target, labels[s[1]]...), l[1]) {
				t.Errorf("%s has no label %s", s[1], l[1])
			}
		}
	}
}

func TestBrokenSourceServesNothing(t *testing.T) {
	m := New("v1", func(string, error) {})
	m.AddDrops(func() (Drops, error) { return Drops{}, errors.New("map is gone") })
	if got := gather(t, m); got["sluice_build_info"] == "" || got["sluice_dropped_packets_total"] != "" {
		t.Errorf("%v", got)
	}
}
