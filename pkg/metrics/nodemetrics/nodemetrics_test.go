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

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// filled is a registry with one value of every metric.
func filled(failed func(string, error)) *Metrics {
	m := New("v1", failed)
	r := status.NewRegistry(slog.New(slog.DiscardHandler))
	r.SetCondition("sb", true, "in-sync", "")
	r.Reporter("evpn").Set(status.Object{Kind: "vrf", Key: "a", State: status.Error, Reason: "bad-vni"})
	m.AddStatus(r)
	m.AddTraffic(func() ([]VRFTraffic, error) {
		return []VRFTraffic{{VNI: 1001, ToFabric: status.Traffic{Packets: 3}}}, nil
	})
	m.AddLoadBalancing(func() (LoadBalancing, error) {
		some := status.VIPTraffic{ToBackends: status.PacketCount{Packets: 4}, ToClients: status.PacketCount{Bytes: 500}, Sessions: 2}
		return LoadBalancing{Evictions: []Evictions{{Table: "vips", Evicting: true, Translated: 7}}, VIPs: []VIP{{Balanced: Balanced{VNI: 1001, Of: "[2001:db8::10]:80", Protocol: "tcp", VIPTraffic: some}, Open: 1}},
			Backends: []Balanced{{VNI: 1001, Of: "[2001:db8::1]:8080", Protocol: "tcp", VIPTraffic: some}}}, nil
	})
	m.AddDrain([]string{"serving", "drained"}, func() string { return "serving" })
	m.AddPaths(func() (map[Path]int, error) { return map[Path]int{{Path: "kernel", Reason: "map-full"}: 2}, nil })
	m.AddVMs(func() []status.VM { return []status.VM{{Path: "ovn", Reason: "acl"}} })
	m.AddImports(func() ([]VRFImports, error) {
		return []VRFImports{{VNI: 1001, Imported: 3, Refused: map[string]uint64{"filtered": 1}}}, nil
	})
	m.AddDrops(func() (status.Drops, error) {
		return status.Drops{Counts: []status.DropCount{{Reason: "no-route", Packets: 5}}}, nil
	})
	m.AddDevices(func() (Devices, error) {
		return Devices{Drops: []DeviceDrops{{Device: "sluice-vxlan", Direction: "rx", Kind: "errors", Packets: 2}}, PathMTUs: map[netip.Addr]int{netip.MustParseAddr("192.0.2.1"): 1400}}, nil
	})
	m.AddTables(func() []status.Table {
		return []status.Table{{Name: "served", Wanted: status.Known(2), Failed: status.Known(0), Maps: []status.MapFill{{Name: "known", Used: 3, Size: 10}, {Name: "served", Used: 7, Size: 10}}}}
	})
	m.AddBGP(func() (status.BGP, error) {
		return status.BGP{Neighbors: []status.Neighbor{{Address: netip.MustParseAddr("2001:db8::1"), ASN: 65000, Up: true, Since: time.Now(), Rejected: map[string]int{"own-as": 1}}}, Rejected: map[string]uint64{"own-vtep": 1}}, nil
	})
	m.AddSteered(func() (map[string]uint64, error) { return map[string]uint64{"steered4": 2}, nil })
	m.AddUnderlay(func() ([]status.UnderlayRoute, error) {
		return []status.UnderlayRoute{{State: status.UnderlayInstalled}, {State: status.UnderlayRefused, Reason: "connected"}}, nil
	})
	m.AddBFD(func() (BFD, error) {
		return BFD{Sessions: map[netip.Addr]*status.BFD{netip.MustParseAddr("fe80::1%eth0"): {Up: true}}, Drops: map[string]uint64{"ttl": 1}}, nil
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
	m.AddMetadata(func() status.MetadataProxy {
		return status.MetadataProxy{Outcomes: []status.MetadataOutcome{{Outcome: "answered", Requests: 3}}, Heartbeat: time.Now()}
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

// Values of package status are counted, and states of theirs are flags.
func TestValues(t *testing.T) {
	m := New("v1", func(c string, err error) { t.Errorf("%s: %v", c, err) })
	m.AddVMs(func() []status.VM {
		return []status.VM{{Path: "ovn", Reason: "acl"}, {Path: "ebpf"}, {Path: "ovn", Reason: "acl"}}
	})
	m.AddTables(func() []status.Table {
		return []status.Table{{Name: "vips", Wanted: status.Known(3), Failed: status.Known(1), Held: "why", Operations: status.Operations{DeleteErrors: 2}, Maps: []status.MapFill{{Name: "answers", Used: 4, Size: 8}}}}
	})
	m.AddUnderlay(func() ([]status.UnderlayRoute, error) {
		hops := intent.NewUnderlayHops(intent.UnderlayHop{Via: netip.MustParseAddr("fe80::1"), Device: "a"}, intent.UnderlayHop{Via: netip.MustParseAddr("fe80::1"), Device: "b"})
		return []status.UnderlayRoute{{State: status.UnderlayInstalled, Hops: hops}, {State: status.UnderlayStale, Hops: hops}, {State: status.UnderlayRefused, Reason: "connected"}}, nil
	})
	m.AddBGP(func() (status.BGP, error) {
		since := time.Unix(1000, 0)
		return status.BGP{Neighbors: []status.Neighbor{{Interface: "up", Up: true, Since: since, IgnoredUpdates: 7, Rejected: map[string]int{"own-as": 4}}, {Interface: "down", State: status.NeighborPrefixLimit, Since: since}}}, nil
	})
	m.AddMetadata(func() status.MetadataProxy {
		return status.MetadataProxy{Listeners: []status.MetadataListener{{Serving: true}, {}, {}}, FileErrors: 5}
	})
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, v := range f.GetMetric() {
			name := f.GetName()
			for _, l := range v.GetLabel() {
				name += " " + l.GetValue()
			}
			got[name] = v.GetGauge().GetValue() + v.GetCounter().GetValue()
		}
	}
	want := map[string]float64{
		"sluice_bgp_neighbor_rejected_routes up own-as": 4,
		"sluice_vip_vms ovn acl":                        2, "sluice_vip_vms ebpf ": 1,
		"sluice_table_rows wanted vips": 3, "sluice_table_rows failed vips": 1, "sluice_table_held vips": 1, "sluice_table_operations_total delete error vips": 2,
		"sluice_map_rows answers vips": 4, "sluice_map_size_rows answers vips": 8,
		"sluice_underlay_routes installed": 1, "sluice_underlay_routes hops": 2, "sluice_underlay_refused_routes connected": 1,
		"sluice_bgp_neighbor_up 0 up": 1, "sluice_bgp_neighbor_up 0 down": 0, "sluice_bgp_neighbor_established_timestamp_seconds 0 up": 1000,
		"sluice_bgp_neighbor_prefix_limit 0 down": 1, "sluice_bgp_neighbor_ignored_updates up": 7,
		"sluice_metadata_listeners serving": 1, "sluice_metadata_listeners waiting": 2, "sluice_metadata_file_errors_total": 5,
	}
	for name, value := range want {
		if v, ok := got[name]; !ok || v != value {
			t.Errorf("%s is %v, want %v", name, v, value)
		}
	}
	if v, ok := got["sluice_bgp_neighbor_established_timestamp_seconds 0 down"]; ok {
		t.Errorf("a session that is down began at %v", v)
	}
}

func TestBrokenSourceServesNothing(t *testing.T) {
	m := New("v1", func(string, error) {})
	m.AddDrops(func() (status.Drops, error) { return status.Drops{}, errors.New("map is gone") })
	if got := gather(t, m); got["sluice_build_info"] == "" || got["sluice_dropped_packets_total"] != "" {
		t.Errorf("%v", got)
	}
}
