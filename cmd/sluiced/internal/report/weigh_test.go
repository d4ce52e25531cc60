package report

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// A name is one load balancer's, with a row for each protocol; two that share it are told apart
// by their _uuid alone.
func TestWeighings(t *testing.T) {
	row := func(uuid ovn.UUID, protocol, backend string) weighable {
		return weighable{uuid, loadbalancer.Row{Protocol: protocol, VIPs: map[string]string{"10.1.0.1:80": backend}}}
	}
	zero := uint16(0)
	for _, tt := range []struct {
		name string
		rows []weighable
		want int
		err  string
	}{
		{"one", []weighable{row("a", "tcp", "10.0.0.1:80"), row("b", "udp", "10.0.0.2:80")}, 1, ""},
		{"of two protocols", []weighable{row("a", "tcp", "10.0.0.1:80"), row("b", "udp", "10.0.0.1:80")}, 2, ""},
		{"of two tenants", []weighable{row("a", "tcp", "10.0.0.1:80"), row("b", "tcp", "10.0.0.1:80")}, 0, "bad request: a and b have this name and backend 10.0.0.1:80; name one by its _uuid"},
		{"of two tenants, one with the protocol left out", []weighable{row("a", "", "10.0.0.1:80"), row("b", "tcp", "10.0.0.1:80")}, 0, "bad request: a and b have this name and backend 10.0.0.1:80; name one by its _uuid"},
		{"none", []weighable{row("a", "tcp", "10.0.0.2:80")}, 0, "backend 10.0.0.1:80: not found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := weighings(tt.rows, nil, netip.MustParseAddrPort("10.0.0.1:80"), &zero)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if len(got) != tt.want || said != tt.err {
				t.Errorf("%d, %q; want %d, %q", len(got), said, tt.want, tt.err)
			}
		})
	}
}

// Weights are written in the rows and in NB_Global in one transaction. What others write there
// meanwhile stays: other nodes of other backends, the owner of the row in its options.
func TestWriteWeights(t *testing.T) {
	for name, raw := range map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound} {
		t.Run(name, func(t *testing.T) { testWriteWeights(t, raw) })
	}
}

func testWriteWeights(t *testing.T, raw []byte) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
	ctx, end := context.WithTimeout(t.Context(), ovsdbtest.Timeout)
	defer end()
	tcp, udp, gone := northbound.NewUUID(), northbound.NewUUID(), northbound.NewUUID()
	once := func(f func(tx *northbound.Tx) error) error {
		w := weighing{rows: []ovn.UUID{ovn.UUID(tcp), ovn.UUID(udp)}}
		return northbound.Once(ctx, northbound.Config{Endpoints: server.Endpoint()}, w.part(), "test", f)
	}
	var backends []string
	for i := range 10 {
		backends = append(backends, fmt.Sprintf("10.0.0.%d:80", i+1))
	}
	if err := once(func(tx *northbound.Tx) error {
		tx.Insert(&nb.NBGlobal{UUID: northbound.NewUUID(), Options: map[string]string{"mac_prefix": "0a"}})
		for uuid, protocol := range map[string]string{tcp: "tcp", udp: "udp"} {
			tx.Insert(&nb.LoadBalancer{UUID: uuid, Name: "web", Protocol: &protocol, Vips: map[string]string{"10.1.0.1:80": strings.Join(backends, ",")},
				Options: map[string]string{"reject": "true"}})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	weigh := func(backend string, weight *uint16) error {
		w := weighing{rows: []ovn.UUID{ovn.UUID(tcp), ovn.UUID(udp), ovn.UUID(gone)}, backend: netip.MustParseAddrPort(backend), weight: weight}
		return northbound.Once(ctx, northbound.Config{Endpoints: server.Endpoint(), Program: "sluiced"}, w.part(), "test", w.write)
	}
	expect := func(row, global map[string]string) {
		t.Helper()
		if err := once(func(tx *northbound.Tx) error {
			for _, uuid := range []string{tcp, udp} {
				if lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuid, "options"); !maps.Equal(lb.Options, row) {
					t.Errorf("options %v, want %v", lb.Options, row)
				}
			}
			if g, _ := northbound.One(tx, northbound.Global, "", "options"); !maps.Equal(g.Options, global) {
				t.Errorf("NB_Global.options %v, want %v", g.Options, global)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	// Ten nodes at a time, and one who writes other options.
	zero := uint16(0)
	var all errgroup.Group
	for _, b := range backends {
		all.Go(func() error { return weigh(b, &zero) })
	}
	all.Go(func() error {
		return once(func(tx *northbound.Tx) error {
			for _, uuid := range []string{tcp, udp} {
				lb, _ := northbound.Get[*nb.LoadBalancer](tx, uuid, "options")
				lb.Options = withKey(lb.Options, "reject", "false")
				tx.Update(lb, "options")
			}
			return nil
		})
	})
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	global := map[string]string{"mac_prefix": "0a"}
	for _, b := range backends {
		for _, uuid := range []string{tcp, udp} {
			global[ovn.HeldWeightKey(ovn.UUID(uuid), b)] = "0"
		}
	}
	weights := slices.Clone(backends)
	slices.SortFunc(weights, func(a, b string) int { return netip.MustParseAddrPort(a).Compare(netip.MustParseAddrPort(b)) })
	row := map[string]string{"reject": "false", "sluice-weights": strings.Join(weights, "=0,") + "=0"}
	expect(row, global)
	for _, b := range backends[1:] {
		if err := weigh(b, nil); err != nil {
			t.Fatal(err)
		}
	}
	expect(map[string]string{"reject": "false", "sluice-weights": "10.0.0.1:80=0"}, map[string]string{"mac_prefix": "0a",
		ovn.HeldWeightKey(ovn.UUID(tcp), backends[0]): "0", ovn.HeldWeightKey(ovn.UUID(udp), backends[0]): "0"})
	if err := weigh("10.0.0.99:80", &zero); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("another backend: %v", err)
	}
	if err := weigh(backends[0], nil); err != nil {
		t.Fatal(err)
	}
	expect(map[string]string{"reject": "false"}, map[string]string{"mac_prefix": "0a"})
}
