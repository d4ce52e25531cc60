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
	if got := s.want(200, 0, "GET", "/pools/"+pool, ""); got["session_persistence"] != nil || s.row(id).Options["affinity_timeout"] != "" {
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

// A VIP takes a port of the caller's project that nothing has, and no other one; an administrator one of any project.
func TestPortOfOthers(t *testing.T) {
	s := newService(t, schema.Northbound)
	ports := []string{uuidOf(22)}
	s.commit(func(tx *northbound.Tx) error {
		for i, ids := range []map[string]string{
			{"neutron:project_id": "alpha"}, {"neutron:project_id": "beta"}, {}, {"neutron:project_id": "alpha", "neutron:device_owner": "compute:nova"},
			{"neutron:project_id": "alpha", "neutron:device_owner": "network:dhcp"},
		} {
			ids["neutron:cidrs"] = fmt.Sprintf("10.0.2.%d/24", 50+i)
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(100 + i), Name: uuidOf(200 + i), ExternalIDs: ids})
			ports = append(ports, uuidOf(100+i))
		}
		tx.Update(&nb.LogicalSwitch{UUID: uuidOf(2), Ports: ports}, "ports")
		return nil
	})
	body := func(port int) string {
		return fmt.Sprintf(`{"loadbalancer": {"project_id": "alpha", "vip_port_id": %q}}`, uuidOf(port))
	}
	for port, text := range map[int]string{201: "not found", 202: "not found", 203: "already used by device compute:nova", 204: "already used by device network:dhcp"} {
		if code, fault := s.call(0, "POST", "/loadbalancers", body(port)); code != 400 || !strings.Contains(fault["faultstring"].(string), text) {
			t.Errorf("port %d: %d %v", port, code, fault)
		}
	}
	mine := s.want(201, 0, "POST", "/loadbalancers", body(200))
	if code, fault := s.call(1, "POST", "/loadbalancers", body(200)); code != 400 || !strings.Contains(fault["faultstring"].(string), mine["id"].(string)) {
		t.Errorf("twice: %d %v", code, fault)
	}
	other := s.want(201, 1, "POST", "/loadbalancers", `{"loadbalancer": {"vip_network_id": "`+uuidOf(2)+`"}}`, "project", "beta")
	for _, role := range []string{"member", "admin"} {
		if code, _ := s.call(0, "POST", "/loadbalancers", fmt.Sprintf(`{"loadbalancer": {"project_id": "alpha", "vip_port_id": %q}}`, other["vip_port_id"]), "role", role); code != 400 {
			t.Errorf("the port of another load balancer, as %s: %d", role, code)
		}
	}
	s.want(201, 1, "POST", "/loadbalancers", body(202), "role", "admin")
}

// A member's weight is what Sluice's eBPF reads, of both families; a weight of 1 needs no word. Other backends' weights,
// as sluicectl lb drain writes them, stay.
func TestWeights(t *testing.T) {
	s := newService(t, schema.Northbound)
	for _, f := range []struct{ cidr, address, backend string }{{"10.0.2.0/24", "10.0.2.%d", "10.0.2.%d:80"}, {"fd00:2::/64", "fd00:2::%d", "[fd00:2::%d]:80"}} {
		snapshot, err := s.stores[0].Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		id := s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnetOf(t, snapshot, uuidOf(2), f.cidr)+`"}}`)["id"].(string)
		pool := s.want(201, 1, "POST", "/pools", `{"pool": {"loadbalancer_id": "`+id+`", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}`)["id"].(string)
		member := func(n int, more string) string {
			return s.want(201, n%2, "POST", "/pools/"+pool+"/members", fmt.Sprintf(`{"member": {"address": "`+f.address+`", "protocol_port": 80%s}}`, n, more))["id"].(string)
		}
		weights := func(want string, of ...any) {
			t.Helper()
			if got := s.row(id).Options["sluice-weights"]; got != fmt.Sprintf(want, of...) {
				t.Errorf("weights %q, want %q", got, fmt.Sprintf(want, of...))
			}
		}
		one, two := member(1, `, "weight": 1`), member(2, `, "weight": 0`)
		weights(f.backend+"=0", 2)
		s.want(200, 0, "PUT", "/pools/"+pool+"/members/"+one, `{"member": {"weight": 256}}`)
		weights(f.backend+"=0,"+f.backend+"=256", 2, 1)
		s.want(200, 1, "PUT", "/pools/"+pool+"/members/"+two, `{"member": {"name": "two"}}`)
		s.want(200, 1, "PUT", "/pools/"+pool+"/members/"+two, `{"member": {"weight": 1}}`)
		weights(f.backend+"=256", 1)
		s.commit(func(tx *northbound.Tx) error { // as sluicectl does
			row := *s.row(id)
			row.Options = map[string]string{"sluice-weights": fmt.Sprintf(f.backend+"=256,"+f.backend+"=0", 1, 2)}
			tx.Update(&row, "options")
			return nil
		})
		s.want(204, 0, "DELETE", "/pools/"+pool+"/members/"+one, "")
		weights(f.backend+"=0", 2)
		s.want(204, 0, "DELETE", "/pools/"+pool+"/members/"+two, "")
		if options := s.row(id).Options; len(options) > 0 {
			t.Errorf("left is %v", options)
		}
	}
}

// A VIP is none of the addresses that a network has for itself or excludes, and OVN's own allocation keeps off it.
func TestAddressesOfOVN(t *testing.T) {
	s := newService(t, schema.Northbound)
	s.commit(func(tx *northbound.Tx) error {
		tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(3), Name: "N3", OtherConfig: map[string]string{"subnet": "10.0.3.0/29", "exclude_ips": "10.0.3.2..10.0.3.4"}})
		return nil
	})
	body := func(address string) string {
		return `{"loadbalancer": {"project_id": "alpha", "vip_network_id": "` + uuidOf(3) + `"` + address + `}}`
	}
	for _, address := range []string{"10.0.3.0", "10.0.3.7"} {
		s.want(500, 0, "POST", "/loadbalancers", body(`, "vip_address": "`+address+`"`), "role", "admin")
	}
	excluded := func() string {
		snapshot, err := s.stores[0].Current(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ls, _ := northbound.Get[*nb.LogicalSwitch](snapshot, uuidOf(3), "other_config")
		return ls.OtherConfig["exclude_ips"]
	}
	var made []string
	for range 2 {
		lb := s.want(201, 1, "POST", "/loadbalancers", body(""), "role", "admin")
		if a := lb["vip_address"]; a != "10.0.3.5" && a != "10.0.3.6" {
			t.Errorf("VIP %v", a)
		}
		made = append(made, lb["id"].(string))
	}
	if got := excluded(); !strings.Contains(got, "10.0.3.5") || !strings.Contains(got, "10.0.3.6") {
		t.Errorf("OVN may give %q away", got)
	}
	s.want(500, 0, "POST", "/loadbalancers", body(""), "role", "admin")
	for _, id := range made {
		s.want(204, 0, "DELETE", "/loadbalancers/"+id, "", "role", "admin")
	}
	if got := excluded(); got != "10.0.3.2..10.0.3.4" {
		t.Errorf("left is %q", got)
	}
	// What somebody else has excluded, and asks for, stays excluded.
	s.commit(func(tx *northbound.Tx) error {
		tx.Update(&nb.LogicalSwitch{UUID: uuidOf(3), OtherConfig: map[string]string{"subnet": "10.0.3.0/29", "exclude_ips": "10.0.3.5"}}, "other_config")
		return nil
	})
	id := s.want(201, 0, "POST", "/loadbalancers", body(`, "vip_address": "10.0.3.5"`), "role", "admin")["id"].(string)
	s.want(204, 1, "DELETE", "/loadbalancers/"+id, "", "role", "admin")
	if got := excluded(); got != "10.0.3.5" {
		t.Errorf("left of somebody else's is %q", got)
	}
}

// What others have done to rows is an error of the one load balancer: it is told and not denied, and lists go on
// without it. A listener that a row of another kind has is none.
func TestDamagedRows(t *testing.T) {
	s := newService(t, schema.Northbound)
	subnet := func() string {
		snapshot, err := s.stores[0].Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return subnetOf(t, snapshot, uuidOf(1), "10.0.1.0/24")
	}()
	whole := s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet+`"}}`)["id"].(string)
	id := s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet+`"}}`)["id"].(string)
	s.commit(func(tx *northbound.Tx) error {
		row := *s.row(id)
		row.ExternalIDs = maps.Clone(row.ExternalIDs)
		row.ExternalIDs["ls_refs"] = "{"
		tx.Update(&row, "external_ids")
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(90), Name: whole, ExternalIDs: map[string]string{"listener_" + uuidOf(91): "80:"}})
		return nil
	})
	for _, method := range []string{"GET", "DELETE"} {
		s.want(500, 1, method, "/loadbalancers/"+id+"?cascade=true", "")
		s.want(404, 1, method, "/listeners/"+uuidOf(91), "")
	}
	if code, list := s.call(0, "GET", "/loadbalancers", ""); code != 200 || len(list["loadbalancers"].([]any)) != 1 {
		t.Errorf("list: %d %v", code, list)
	}
}

// A VIP needs a network whose switch can be told from the others, and no string has a NUL.
func TestRefusedForNorthbound(t *testing.T) {
	s := newService(t, schema.Northbound)
	s.commit(func(tx *northbound.Tx) error {
		for i, name := range []string{"", "twin", "twin"} {
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(30 + i), Name: name, OtherConfig: map[string]string{"subnet": "10.0.3.0/24"}})
		}
		return nil
	})
	for i := range 3 {
		code, fault := s.call(0, "POST", "/loadbalancers", `{"loadbalancer": {"project_id": "alpha", "vip_network_id": "`+uuidOf(30+i)+`"}}`, "role", "admin")
		if code != 400 || !strings.Contains(fault["faultstring"].(string), "is not its own in OVN") {
			t.Errorf("switch %d: %d %v", i, code, fault)
		}
	}
	s.want(400, 0, "POST", "/loadbalancers", `{"loadbalancer": {"project_id": "al\u0000pha", "vip_network_id": "`+uuidOf(1)+`"}}`, "role", "admin")
	s.want(400, 0, "POST", "/loadbalancers", `{"loadbalancer": {"tags": ["a\u0000"], "vip_network_id": "`+uuidOf(1)+`"}}`, "role", "admin")
}
