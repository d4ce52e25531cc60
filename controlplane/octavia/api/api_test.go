package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
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

// service is two replicas at one database, with networks N1 (10.0.1.0/24 and fd00:1::/64) and N2 at
// a router.
type service struct {
	*testing.T
	stores   [2]*northbound.Store
	replicas [2]http.Handler
}

// byHeader takes the caller from the headers of a test's request.
type byHeader struct{}

func (byHeader) Authenticate(r *http.Request) (identity.Caller, error) {
	role := r.Header.Get("role")
	return identity.Caller{Project: r.Header.Get("project"), Admin: role == "admin", Writer: role != "reader"}, nil
}

func newService(t *testing.T, raw []byte) *service {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
	s := &service{T: t}
	for i := range s.stores {
		store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error)
		go func() { done <- store.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-done })
		mux := http.NewServeMux()
		New(Config{Store: store, Auth: byHeader{}, Networks: map[string][]string{uuidOf(1): {"alpha"}, uuidOf(2): {"alpha", "beta"}}}).Register(mux, "/v2.0/lbaas", "/v2/lbaas")
		s.stores[i], s.replicas[i] = store, mux
	}
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	err := s.stores[0].Commit(ctx, "test", func(tx *northbound.Tx) error {
		lr := &nb.LogicalRouter{UUID: uuidOf(5), Name: "R1"}
		for n := 1; n <= 2; n++ {
			lrp := &nb.LogicalRouterPort{UUID: uuidOf(10 + n), Name: fmt.Sprintf("lrp-%d", n), MAC: fmt.Sprintf("02:00:00:00:00:0%d", n),
				Networks: []string{fmt.Sprintf("10.0.%d.1/24", n), fmt.Sprintf("fd00:%d::1/64", n)}}
			tx.Insert(lrp)
			lr.Ports = append(lr.Ports, lrp.UUID)
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(20 + n), Name: "to-" + lrp.Name, Type: "router", Options: map[string]string{"router-port": lrp.Name}})
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(n), Name: fmt.Sprintf("N%d", n), Ports: []string{uuidOf(20 + n)}})
		}
		tx.Insert(lr)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// call is a request of a project's member at a replica. The answer is decoded; it is empty for none.
func (s *service) call(replica int, method, path, body string, headers ...string) (int, map[string]any) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, "/v2.0/lbaas"+path, strings.NewReader(body))
	r.Header.Set("project", "alpha")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.replicas[replica].ServeHTTP(w, r)
	raw, err := io.ReadAll(w.Body)
	if err != nil {
		s.Fatal(err)
	}
	var out map[string]any
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &out); err != nil {
			s.Fatalf("%s %s: %d %s", method, path, w.Code, raw)
		}
	}
	return w.Code, out
}

// want is call that has to answer with a status. It returns the object in the answer.
func (s *service) want(status, replica int, method, path, body string, headers ...string) map[string]any {
	s.Helper()
	code, out := s.call(replica, method, path, body, headers...)
	if code != status {
		s.Fatalf("%s %s: %d %v, want %d", method, path, code, out, status)
	}
	for _, v := range out {
		if o, is := v.(map[string]any); is {
			return o
		}
	}
	return out
}

func (s *service) row(name string) *nb.LoadBalancer {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	snapshot, err := s.stores[1].Barrier(ctx)
	if err != nil {
		s.Fatal(err)
	}
	row, _ := northbound.One(snapshot, northbound.LoadBalancerByName, name)
	return row
}

func (s *service) subnet(n int) string {
	s.Helper()
	snapshot, err := s.stores[0].Snapshot()
	if err != nil {
		s.Fatal(err)
	}
	return subnetOf(s.T, snapshot, uuidOf(n), fmt.Sprintf("10.0.%d.0/24", n))
}

// The five steps of the source design, each asked at one replica and shown by the other.
func TestFiveSteps(t *testing.T) {
	for name, raw := range map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound} {
		t.Run(name, func(t *testing.T) { testFiveSteps(newService(t, raw)) })
	}
}

func testFiveSteps(s *service) {
	n1, n2 := s.subnet(1), s.subnet(2)
	lb := s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"name": "lb1", "vip_subnet_id": "`+n1+`", "vip_address": "10.0.1.10", "provider": "ovn"}}`)
	id := lb["id"].(string)
	port := lb["vip_port_id"].(string)
	check := func(protocol string, ids map[string]string, vips map[string]string) {
		s.Helper()
		row := s.row(id)
		got := maps.Clone(row.ExternalIDs)
		maps.DeleteFunc(got, func(k, _ string) bool { return strings.HasPrefix(k, "sluice:") })
		want := maps.Clone(ids)
		maps.Copy(want, map[string]string{"enabled": "True", "lr_ref": "R1", "neutron:vip": "10.0.1.10", "neutron:vip_port_id": port})
		if !maps.Equal(got, want) || !maps.Equal(row.Vips, vips) || (row.Protocol == nil) != (protocol == "") {
			s.Errorf("row\n%v %v\nwant\n%v %v", got, row.Vips, want, vips)
		}
	}
	check("", map[string]string{"ls_refs": `{"N1": 1}`}, nil)
	if got := s.want(200, 1, "GET", "/loadbalancers/"+id, ""); got["name"] != "lb1" || got["provisioning_status"] != "ACTIVE" || got["vip_subnet_id"] != n1 {
		s.Errorf("the other replica shows %v", got)
	}
	pool := s.want(201, 1, "POST", "/pools", `{"pool": {"name": "p1", "loadbalancer_id": "`+id+`", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}`)["id"].(string)
	check("tcp", map[string]string{"ls_refs": `{"N1": 1}`, "pool_" + pool: ""}, nil)
	m1 := s.want(201, 0, "POST", "/pools/"+pool+"/members", `{"member": {"address": "10.0.1.107", "protocol_port": 80, "subnet_id": "`+n1+`"}}`)["id"].(string)
	m2 := s.want(201, 1, "POST", "/pools/"+pool+"/members", `{"member": {"address": "10.0.2.107", "protocol_port": 80, "subnet_id": "`+n2+`", "weight": 3}}`)["id"].(string)
	members := map[string]string{
		"ls_refs": `{"N1": 2, "N2": 1}`, "pool_" + pool: "member_" + m1 + "_10.0.1.107:80_" + n1 + ",member_" + m2 + "_10.0.2.107:80_" + n2,
		"neutron:member_status": `{"` + m1 + `": "NO_MONITOR", "` + m2 + `": "NO_MONITOR"}`,
	}
	check("tcp", members, nil)
	listener := s.want(201, 0, "POST", "/listeners", `{"listener": {"name": "l1", "loadbalancer_id": "`+id+`", "protocol": "TCP", "protocol_port": 82, "default_pool_id": "`+pool+`"}}`)["id"].(string)
	members["listener_"+listener] = "82:pool_" + pool
	check("tcp", members, map[string]string{"10.0.1.10:82": "10.0.1.107:80,10.0.2.107:80"})

	if got := s.want(200, 1, "GET", "/pools/"+pool+"/members/"+m2, ""); got["weight"] != 3.0 || got["subnet_id"] != n2 {
		s.Errorf("member %v", got)
	}
	s.want(200, 1, "PUT", "/pools/"+pool+"/members/"+m1, `{"member": {"admin_state_up": false}}`)
	members["neutron:member_status"] = `{"` + m1 + `": "OFFLINE", "` + m2 + `": "NO_MONITOR"}`
	check("tcp", members, map[string]string{"10.0.1.10:82": "10.0.2.107:80"})
	s.want(200, 0, "PUT", "/loadbalancers/"+id, `{"loadbalancer": {"description": "d", "tags": ["a", "b"]}}`)
	if got := s.want(200, 1, "GET", "/loadbalancers/"+id, ""); got["description"] != "d" || len(got["tags"].([]any)) != 2 || got["name"] != "lb1" {
		s.Errorf("after the update: %v", got)
	}
	s.want(200, 1, "PUT", "/listeners/"+listener, `{"listener": {"default_pool_id": null, "name": null}}`)
	if got := s.want(200, 0, "GET", "/listeners/"+listener, ""); got["default_pool_id"] != nil || got["name"] != "" || s.row(id).ExternalIDs["listener_"+listener] != "82:" {
		s.Errorf("without its pool: %v", got)
	}
	s.want(200, 0, "PUT", "/pools/"+pool, `{"pool": {"session_persistence": {"type": "SOURCE_IP"}}}`)
	if got := s.row(id).Options["affinity_timeout"]; got != "360" {
		s.Errorf("affinity %q", got)
	}
	s.want(200, 1, "PUT", "/pools/"+pool, `{"pool": {"session_persistence": null}}`)
	if got := s.want(200, 0, "GET", "/pools/"+pool, ""); got["session_persistence"] != nil || len(s.row(id).Options) != 0 {
		s.Errorf("without persistence: %v", got)
	}
	s.want(204, 1, "DELETE", "/pools/"+pool+"/members/"+m1, "")
	s.want(404, 0, "DELETE", "/pools/"+pool+"/members/"+m1, "")
	code, fault := s.call(1, "DELETE", "/loadbalancers/"+id, "")
	if want := "Validation failure: Cannot delete Load Balancer " + id + " - it has children"; code != 400 || fault["faultstring"] != want {
		s.Errorf("delete with children: %d %v", code, fault)
	}
	s.want(204, 1, "DELETE", "/loadbalancers/"+id+"?cascade=true", "")
	s.want(404, 0, "GET", "/loadbalancers/"+id, "")
	if s.row(id) != nil {
		s.Error("a row is left")
	}
	snapshot, err := s.stores[1].Snapshot()
	if err != nil {
		s.Fatal(err)
	}
	if n := snapshot.Len(nb.LogicalSwitchPortTable); n != 2 {
		s.Errorf("%d ports are left, of two", n)
	}
}

// Fifty creates at once at two replicas: no address twice.
func TestAddressesAtOnce(t *testing.T) {
	s := newService(t, schema.Northbound)
	n1 := s.subnet(1)
	var mu sync.Mutex
	var all []string
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			code, out := s.call(i%2, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+n1+`"}}`)
			if code != 201 {
				t.Errorf("%d %v", code, out)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, out["loadbalancer"].(map[string]any)["vip_address"].(string))
		})
	}
	wg.Wait()
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != 50 {
		t.Errorf("%d addresses of 50: %q", n, all)
	}
	t.Logf("conflicts: %d and %d", s.stores[0].Stats().Conflicts, s.stores[1].Stats().Conflicts)
}

// What is no JSON value, or one with many values in one another, is refused before it takes memory for each.
func TestBodiesThatCannotBeRead(t *testing.T) {
	s := newService(t, schema.Northbound)
	for _, body := range []string{"{", `{"loadbalancer": {}}}`, `{"loadbalancer": {}} {}`, `{"loadbalancer" {}}`, `{1: 2}`, "nul",
		strings.Repeat("[", 1<<19), strings.Repeat(`{"a":`, 1<<17), `{"loadbalancer": {"tags": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + "}}"} {
		if code, out := s.call(0, "POST", "/loadbalancers", body); code != http.StatusBadRequest || out["faultstring"] != "Request is not in valid JSON format" {
			t.Errorf("%d bytes: %d %v", len(body), code, out)
		}
	}
}
