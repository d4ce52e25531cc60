package octavia_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/api"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// The names of the source design's examples.
const (
	seedRow      = "9dd65bae-2501-43f2-b34e-38a9cb7e4251"
	seedBalancer = "973a201a-8787-4f6e-9b8f-ab9f93c31f44"
	seedRouter   = "neutron-52b6299c-6e38-4226-a275-77370296f257"
	seedNet10    = "2526c68a-5a9e-484c-8e00-0716388f6563" // 10.0.0.0/24; its VIP's port has this ID as well
	seedNet20    = "12c42705-3e15-4e2d-8fc0-070d1b80b9ef" // 20.0.0.0/24
	seedSubnet10 = "2d54ec67-c589-473b-bc67-41f3d1331fef"
	seedSubnet20 = "c2e2da10-1217-4fe2-837a-1c45da587df7"
	seedPool     = "f2ddf7a6-4047-4cc9-97be-1d1a6c47ece9"
	seedListener = "12345678-2501-43f2-b34e-38a9cb7e4132"
	seedMember10 = "579c0c9f-d37d-4ba5-beed-cabf6331032d"
	seedMember20 = "d100f2ed-9b55-4083-be78-7f203d095561"
)

// seedRows are external_ids after the five steps of the source design, as the provider of that time
// wrote them.
var seedRows = [5]map[string]string{
	{"ls_refs": `{"neutron-` + seedNet10 + `": 1}`},
	{"ls_refs": `{"neutron-` + seedNet10 + `": 1}`, "pool_" + seedPool: ""},
	{"ls_refs": `{"neutron-` + seedNet10 + `": 2}`, "pool_" + seedPool: "member_" + seedMember10 + "_10.0.0.107:80"},
	{
		"ls_refs":          `{"neutron-` + seedNet10 + `": 2, "neutron-` + seedNet20 + `": 1}`,
		"pool_" + seedPool: "member_" + seedMember10 + "_10.0.0.107:80,member_" + seedMember20 + "_20.0.0.107:80",
	},
	{
		"ls_refs":                  `{"neutron-` + seedNet10 + `": 2, "neutron-` + seedNet20 + `": 1}`,
		"pool_" + seedPool:         "10.0.0.107:80,20.0.0.107:80",
		"listener_" + seedListener: "82:pool_" + seedPool,
	},
}

// A load balancer in rows of the source design's form is listed with all that it has. The first
// change writes its row anew, in the form of today, and leaves IDs as they were listed.
func TestOlderRows(t *testing.T) {
	for name, raw := range map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound} {
		for step := range seedRows {
			t.Run(fmt.Sprintf("%s, step %d", name, step+1), func(t *testing.T) { testOlderRow(t, raw, step) })
		}
	}
}

func testOlderRow(t *testing.T, raw []byte, step int) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
	store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	limited, end := context.WithTimeout(ctx, ovsdbtest.Timeout)
	defer end()
	ids := maps.Clone(seedRows[step])
	maps.Copy(ids, map[string]string{"lr_ref": seedRouter, "neutron:vip": "10.0.0.10", "neutron:vip_port_id": seedNet10})
	if err := store.Commit(limited, "test", func(tx *northbound.Tx) error { seedCloud(tx, ids, step); return nil }); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	api.New(api.Config{Store: store, Auth: identity.Anybody{Project: "p"}}).Register(mux, "")
	call := func(method, path, body string, into any) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(limited, method, path, strings.NewReader(body)))
		if w.Code >= 300 {
			t.Fatalf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	var listed struct {
		LoadBalancers []api.LoadBalancer `json:"loadbalancers"`
		Members       []api.Member       `json:"members"`
		Pools         []api.Pool         `json:"pools"`
	}
	call("GET", "/loadbalancers", "", &listed)
	if b := listed.LoadBalancers; len(b) != 1 || b[0].ID != seedBalancer || b[0].VIPAddress != "10.0.0.10" || len(b[0].Pools) != min(step, 1) || len(b[0].Listeners) != step/4 {
		t.Errorf("listed as %+v", b)
	}
	token := map[string]string{}
	if step > 0 {
		call("GET", "/pools", "", &listed)
		if p := listed.Pools; len(p) != 1 || p[0].Protocol != "TCP" {
			t.Errorf("pools %+v", p)
		}
		call("GET", "/pools/"+seedPool+"/members", "", &listed)
	}
	if len(listed.Members) != []int{0, 0, 1, 2, 2}[step] {
		t.Fatalf("members %+v", listed.Members)
	}
	for i, m := range listed.Members {
		subnet, id := []string{seedSubnet10, seedSubnet20}[i], []string{seedMember10, seedMember20}[i]
		if m.Address != []string{"10.0.0.107", "20.0.0.107"}[i] || m.Port != 80 || m.Subnet == nil || *m.Subnet != subnet || m.OperatingStatus != "NO_MONITOR" {
			t.Errorf("a member is listed as %+v", m)
		}
		if step < 4 && m.ID != id || step == 4 && len(m.ID) != 36 {
			t.Errorf("member %d has the ID %q", i, m.ID)
		}
		token[m.ID] = fmt.Sprintf("member_%s_%s:80_%s", m.ID, m.Address, subnet)
	}
	var changed any
	want := map[string]string{
		"enabled": "True", "lr_ref": seedRouter, "ls_refs": ids["ls_refs"], "neutron:vip": "10.0.0.10", "neutron:vip_port_id": seedNet10,
	}
	vips := map[string]string{}
	if step == 0 {
		call("PUT", "/loadbalancers/"+seedBalancer, `{"loadbalancer": {"name": "lb1"}}`, &changed)
	} else {
		call("PUT", "/pools/"+seedPool, `{"pool": {"name": "p1"}}`, &changed)
		var members []string
		for _, m := range listed.Members {
			members = append(members, token[m.ID])
		}
		want["pool_"+seedPool] = strings.Join(members, ",")
	}
	if step == 4 {
		want["listener_"+seedListener] = "82:pool_" + seedPool
		want["neutron:member_status"] = fmt.Sprintf(`{"%s": "NO_MONITOR", "%s": "NO_MONITOR"}`, listed.Members[0].ID, listed.Members[1].ID)
		vips["10.0.0.10:82"] = "10.0.0.107:80,20.0.0.107:80"
	}
	s, err := store.Barrier(limited)
	if err != nil {
		t.Fatal(err)
	}
	row, _ := northbound.Get[*nb.LoadBalancer](s, seedRow)
	maps.DeleteFunc(row.ExternalIDs, func(k, _ string) bool { return strings.HasPrefix(k, "sluice:") })
	if !maps.Equal(row.ExternalIDs, want) || !maps.Equal(row.Vips, vips) || len(row.SelectionFields) != 4 {
		t.Errorf("the row is %+v\nwant %v, %v", row, want, vips)
	}
	if (row.Protocol == nil) != (step == 0) || row.Protocol != nil && *row.Protocol != "tcp" {
		t.Errorf("protocol %v", row.Protocol)
	}
	before := listed.Members
	listed.Members = nil
	if step > 0 {
		call("GET", "/pools/"+seedPool+"/members", "", &listed)
	}
	for i, m := range listed.Members {
		if m.ID != before[i].ID || *m.Subnet != *before[i].Subnet {
			t.Errorf("a member was %+v, and is %+v", before[i], m)
		}
	}
}

// seedCloud has the two networks of the examples at their router, and the load balancer.
func seedCloud(tx *northbound.Tx, ids map[string]string, step int) {
	lr := &nb.LogicalRouter{UUID: northbound.NewUUID(), Name: seedRouter, LoadBalancer: []string{seedRow}}
	for i, n := range []struct{ network, subnet, cidr string }{{seedNet10, seedSubnet10, "10.0.0.1/24"}, {seedNet20, seedSubnet20, "20.0.0.1/24"}} {
		lrp := &nb.LogicalRouterPort{UUID: northbound.NewUUID(), Name: "lrp-" + n.subnet, MAC: fmt.Sprintf("02:00:00:00:00:0%d", i), Networks: []string{n.cidr},
			ExternalIDs: map[string]string{"neutron:subnet_ids": n.subnet}}
		lsp := &nb.LogicalSwitchPort{UUID: northbound.NewUUID(), Name: "to-" + n.subnet, Type: "router", Options: map[string]string{"router-port": lrp.Name}}
		tx.Insert(lrp)
		tx.Insert(lsp)
		tx.Insert(&nb.LogicalSwitch{UUID: northbound.NewUUID(), Name: "neutron-" + n.network, Ports: []string{lsp.UUID}, LoadBalancer: []string{seedRow}})
		lr.Ports = append(lr.Ports, lrp.UUID)
	}
	tx.Insert(lr)
	lb := &nb.LoadBalancer{UUID: seedRow, Name: seedBalancer, ExternalIDs: ids}
	if step == 4 {
		lb.Vips = map[string]string{"10.0.0.10:82": "10.0.0.107:80,20.0.0.107:80"}
	}
	tx.Insert(lb)
}
