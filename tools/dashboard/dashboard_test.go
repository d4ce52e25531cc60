package main

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/metrics/nodemetrics"
)

// Each metric of the list is on a panel, and each panel has queries, a title of its own and, but for
// bands, a unit.
func TestEachMetricIsShown(t *testing.T) {
	shown, titles := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		for _, p := range r.panels {
			list, err := p.all()
			if err != nil || len(list) == 0 {
				t.Errorf("%s: %d queries, %v", p.title, len(list), err)
			}
			for _, e := range list {
				for _, m := range nodemetrics.List() {
					shown[m.Name] = shown[m.Name] || strings.Contains(e.text, m.Name)
				}
			}
			if titles[p.title] || (p.view == lines) == (p.unit == "") {
				t.Errorf("%s: unit %q, or the title is there twice", p.title, p.unit)
			}
			titles[p.title] = true
		}
	}
	for _, m := range nodemetrics.List() {
		if !shown[m.Name] {
			t.Errorf("%s is on no panel of panels.go", m.Name)
		}
	}
}

func TestQueries(t *testing.T) {
	for _, tt := range []struct {
		q    query
		want string
	}{
		{query{metric: "sluice_vrf_packets_total"}, `sum by (vni, direction) (rate(sluice_vrf_packets_total{instance=~"$instance"}[$__rate_interval]))`},
		{query{metric: "sluice_ovsdb_in_sync", over: "max", per: node}, `max by (instance, database) (sluice_ovsdb_in_sync{instance=~"$instance"})`},
		{query{metric: "sluice_metadata_connections"}, `sum (sluice_metadata_connections{instance=~"$instance"})`},
		{query{metric: "sluice_announce_delay_seconds"}, `histogram_quantile(0.5, sum by (le) (rate(sluice_announce_delay_seconds_bucket{instance=~"$instance"}[$__rate_interval])))`},
	} {
		if got, err := tt.q.expressions(); err != nil || got[0].text != tt.want {
			t.Errorf("%v\n%v\n%s", err, got, tt.want)
		}
	}
	for _, q := range []query{{metric: "sluice_none"}, {metric: "sluice_vrfs", of: []string{"vni"}}} {
		if got, err := q.expressions(); err == nil {
			t.Errorf("%+v gives %v", q, got)
		}
	}
}

// A panel that computes from its metric says what it shows.
func TestPageSaysSomething(t *testing.T) {
	for _, r := range rows {
		for _, p := range r.panels {
			if said := p.description(); strings.Contains(said, "Unix time") && strings.HasPrefix(p.queries[0].shape, "time() -") {
				t.Errorf("%s: %q", p.title, said)
			}
		}
	}
}
