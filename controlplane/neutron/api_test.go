package neutron

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func uuidOf(n int) string { return fmt.Sprintf("9c5a1e0c-64a3-4a4e-8e4f-%012d", n) }

type byHeader struct{}

func (byHeader) Authenticate(r *http.Request) (identity.Caller, error) {
	project := r.Header.Get("project")
	if project == "" {
		return identity.Caller{}, identity.ErrUnknownToken
	}
	return identity.Caller{Project: project, Admin: project == "admin"}, nil
}

func TestNames(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	done := make(chan error)
	go func() { done <- store.Run(ctx) }()
	defer func() { cancel(); <-done }()
	err = store.Commit(ctx, "test", func(tx *northbound.Tx) error {
		for n := 1; n <= 2; n++ {
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(10 + n), Name: fmt.Sprintf("port-%d", n), Addresses: []string{fmt.Sprintf("02:00:00:00:00:0%d 10.0.%d.7 fd00:%d::7", n, n, n)},
				ExternalIDs: map[string]string{"neutron:project_id": []string{"alpha", "beta"}[n-1], "neutron:cidrs": fmt.Sprintf("10.0.%d.7/24", n)}})
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("N%d", n), Ports: []string{uuidOf(10 + n)},
				OtherConfig: map[string]string{"subnet": fmt.Sprintf("10.0.%d.0/24", n), "ipv6_prefix": fmt.Sprintf("fd00:%d::/64", n)}})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	New(Config{Store: store, Auth: byHeader{}, Networks: map[string][]string{uuidOf(1): {"alpha", "gamma"}}}).Register(mux, "/v2.0")
	get := func(project, path string) (int, map[string]any) {
		t.Helper()
		r := httptest.NewRequestWithContext(ctx, "GET", "/v2.0"+path, nil)
		r.Header.Set("project", project)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		var out map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		return w.Code, out
	}
	for _, c := range []struct {
		project, path, list string
		n                   int
	}{
		{"alpha", "/networks", "networks", 1}, {"admin", "/networks", "networks", 2}, {"beta", "/networks", "networks", 0},
		{"alpha", "/networks?name=N1", "networks", 1}, {"alpha", "/networks?name=N2", "networks", 0}, {"admin", "/networks?id=" + uuidOf(2), "networks", 1},
		{"alpha", "/subnets", "subnets", 2}, {"admin", "/subnets", "subnets", 4}, {"alpha", "/subnets?name=N1-6", "subnets", 1},
		{"alpha", "/subnets?network_id=" + uuidOf(1) + "&ip_version=4", "subnets", 1},
		{"alpha", "/ports", "ports", 1}, {"admin", "/ports?id=port-2", "ports", 1}, {"alpha", "/ports?id=port-2", "ports", 0}, {"gamma", "/networks", "networks", 1}, {"gamma", "/ports", "ports", 0}, {"beta", "/ports", "ports", 0},
		{"alpha", "/networks?nosuch=1", "networks", 1}, {"alpha", "/extensions", "extensions", 0},
	} {
		code, out := get(c.project, c.path)
		list, is := out[c.list].([]any)
		if code != 200 || !is || len(list) != c.n {
			t.Errorf("%s as %s: %d %v, want %d", c.path, c.project, code, out, c.n)
		}
	}
	_, out := get("alpha", "/ports")
	if port := out["ports"].([]any)[0].(map[string]any); len(port["fixed_ips"].([]any)) != 2 || port["mac_address"] != "02:00:00:00:00:01" {
		t.Errorf("the port is %v", port)
	}
	if code, out := get("alpha", "/networks/"+uuidOf(1)); code != 200 || out["network"].(map[string]any)["name"] != "N1" {
		t.Errorf("a network: %d %v", code, out)
	}
	for _, path := range []string{"/networks/" + uuidOf(2), "/networks/N1", "/subnets/x", "/ports/x", "/extensions/x"} {
		if code, out := get("alpha", path); code != 404 || out["NeutronError"] == nil {
			t.Errorf("%s: %d %v", path, code, out)
		}
	}
	// Pages of one, there and back.
	var seen []string
	for _, turn := range []struct{ first, rel, want string }{
		{"/subnets?limit=1&sort_key=cidr&sort_dir=asc&fields=cidr&fields=id", "next", "10.0.1.0/24 10.0.2.0/24 fd00:1::/64 fd00:2::/64"},
		{"/subnets?limit=1&sort_key=cidr&sort_dir=asc&fields=cidr&page_reverse=True", "previous", "fd00:2::/64 fd00:1::/64 10.0.2.0/24 10.0.1.0/24"},
	} {
		seen = seen[:0]
		for path := turn.first; path != ""; {
			_, out := get("admin", path)
			path = ""
			list := out["subnets"].([]any)
			for _, s := range list {
				seen = append(seen, s.(map[string]any)["cidr"].(string))
			}
			for _, l := range out["subnets_links"].([]any) {
				if l := l.(map[string]any); l["rel"] == turn.rel && len(list) > 0 {
					path = strings.TrimPrefix(l["href"].(string), "http://example.com/v2.0")
				}
			}
		}
		if got := strings.Join(seen, " "); got != turn.want {
			t.Errorf("pages %s: %s", turn.rel, got)
		}
	}
	if _, out := get("admin", "/networks?sort_key=name&sort_dir=desc&fields=name"); fmt.Sprint(out["networks"]) != "[map[name:N2] map[name:N1]]" {
		t.Errorf("sorted: %v", out)
	}
	for query, want := range map[string]int{
		"limit=x": 400, "limit=-1": 400, "sort_key=name": 400, "sort_key=nosuch&sort_dir=asc": 400, "sort_key=name&sort_dir=up": 400,
		"limit=1&marker=nosuch": 404, "marker=nosuch": 200, "admin_state_up=True": 200,
	} {
		if code, out := get("alpha", "/networks?"+query); code != want {
			t.Errorf("%s: %d %v", query, code, out)
		}
	}
	if code, _ := get("", "/networks"); code != 401 {
		t.Errorf("without a token: %d", code)
	}
}
