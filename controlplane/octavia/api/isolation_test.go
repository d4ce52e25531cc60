package api

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// access is a route: a body that its owner may send, and what is in it of another project.
type access struct {
	body string
	// list: others get an answer without the object.
	list bool
	// open: a member of any project may make one, of its own.
	open bool
	// nothing: there is nothing, which the owner is told.
	nothing bool
}

// matrix has each route. ID is what the body refers to, of the owner.
var matrix = map[string]access{
	"POST /loadbalancers":               {body: `{"loadbalancer": {"vip_subnet_id": "SUBNET"}}`, open: true},
	"GET /loadbalancers":                {list: true},
	"GET /loadbalancers/{id}":           {},
	"GET /loadbalancers/{id}/{rest...}": {nothing: true},
	"PUT /loadbalancers/{id}":           {body: `{"loadbalancer": {"name": "x"}}`},
	"DELETE /loadbalancers/{id}":        {},
	"POST /listeners":                   {body: `{"listener": {"loadbalancer_id": "BALANCER", "protocol": "UDP", "protocol_port": 53}}`},
	"GET /listeners":                    {list: true},
	"GET /listeners/{id}":               {},
	"PUT /listeners/{id}":               {body: `{"listener": {"name": "x"}}`},
	"DELETE /listeners/{id}":            {},
	"POST /pools":                       {body: `{"pool": {"loadbalancer_id": "BALANCER", "protocol": "UDP", "lb_algorithm": "SOURCE_IP_PORT"}}`},
	"GET /pools":                        {list: true},
	"GET /pools/{id}":                   {},
	"PUT /pools/{id}":                   {body: `{"pool": {"name": "x"}}`},
	"DELETE /pools/{id}":                {},
	"POST /pools/{pool}/members":        {body: `{"member": {"address": "10.0.1.9", "protocol_port": 80, "subnet_id": "SUBNET"}}`},
	"GET /pools/{pool}/members":         {},
	"GET /pools/{pool}/members/{id}":    {},
	"PUT /pools/{pool}/members/{id}":    {body: `{"member": {"name": "x"}}`},
	"DELETE /pools/{pool}/members/{id}": {},
}

// Each route, by each kind of caller who may not use it: refused, and nothing in the database
// differs.
func TestIsolation(t *testing.T) {
	s := newService(t, schema.Northbound)
	subnet := s.subnet(1)
	ids := map[string]string{"SUBNET": subnet}
	ids["BALANCER"] = s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet+`"}}`)["id"].(string)
	ids["pools"] = s.want(201, 0, "POST", "/pools", `{"pool": {"loadbalancer_id": "`+ids["BALANCER"]+`", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}`)["id"].(string)
	ids["listeners"] = s.want(201, 0, "POST", "/listeners", `{"listener": {"loadbalancer_id": "`+ids["BALANCER"]+`", "protocol": "TCP", "protocol_port": 80}}`)["id"].(string)
	ids["members"] = s.want(201, 0, "POST", "/pools/"+ids["pools"]+"/members", `{"member": {"address": "10.0.1.7", "protocol_port": 80, "subnet_id": "`+subnet+`"}}`)["id"].(string)
	ids["loadbalancers"] = ids["BALANCER"]
	before := s.content()

	for pattern := range New(Config{}).Routes() {
		a, ok := matrix[pattern]
		if !ok {
			t.Errorf("%s has no row in the matrix", pattern)
			continue
		}
		method, path, _ := strings.Cut(pattern, " ")
		path, _, _ = strings.Cut(path, "/{rest...}")
		kind := strings.Split(path, "/")
		path = strings.ReplaceAll(path, "{pool}", ids["pools"])
		path = strings.ReplaceAll(path, "{id}", ids[kind[max(1, len(kind)-2)]])
		if a.nothing {
			path += "/nosuch"
		}
		body := a.body
		for name, id := range ids {
			body = strings.ReplaceAll(body, strings.ToUpper(name), id)
		}
		for _, c := range []struct {
			who     string
			headers []string
			writes  bool // the caller may write what is of its own project
			own     bool // and this is
		}{
			{"a member of another project", []string{"project", "beta"}, true, false},
			{"a reader of another project", []string{"project", "beta", "role", "reader"}, false, false},
			{"a reader of the project", []string{"project", "alpha", "role", "reader"}, false, true},
			{"a member of no project", []string{"project", ""}, true, false},
		} {
			if a.open && c.writes && !strings.Contains(c.who, "no project") {
				continue
			}
			code, out := s.call(1, method, path, body, c.headers...)
			reading := method == http.MethodGet
			switch {
			case reading && c.own:
				if want := map[bool]int{false: http.StatusOK, true: http.StatusNotFound}[a.nothing]; code != want {
					t.Errorf("%s by %s: %d %v", pattern, c.who, code, out)
				}
			case a.list:
				list, _ := out[kind[1]].([]any)
				if code != http.StatusOK || len(list) != 0 {
					t.Errorf("%s by %s: %d %v", pattern, c.who, code, out)
				}
			case a.open && c.writes: // there is no project to make it in
				if code != http.StatusBadRequest {
					t.Errorf("%s by %s: %d %v", pattern, c.who, code, out)
				}
			case code != http.StatusForbidden:
				t.Errorf("%s by %s: %d %v", pattern, c.who, code, out)
			}
		}
	}
	if after := s.content(); !reflect.DeepEqual(before, after) {
		t.Errorf("the database was\n%v\nand is\n%v", before, after)
	}
	for pattern := range matrix {
		if _, ok := New(Config{}).Routes()[pattern]; !ok {
			t.Errorf("there is no route %s", pattern)
		}
	}
	// A network of another project, and a port in it, are as if they were not there.
	for _, body := range []string{
		`{"loadbalancer": {"vip_subnet_id": "` + subnet + `"}}`, `{"loadbalancer": {"vip_subnet_id": "` + s.subnet(2) + `", "additional_vips": [{"subnet_id": "` + subnet + `"}]}}`,
		`{"loadbalancer": {"vip_network_id": "` + uuidOf(1) + `"}}`,
		`{"loadbalancer": {"vip_port_id": "` + s.want(200, 0, "GET", "/loadbalancers/"+ids["BALANCER"], "")["vip_port_id"].(string) + `"}}`,
	} {
		if code, out := s.call(1, "POST", "/loadbalancers", body, "project", "beta"); code != http.StatusBadRequest || !strings.HasSuffix(out["faultstring"].(string), " not found.") {
			t.Errorf("%s by another project: %d %v", body, code, out)
		}
	}
	own := s.want(201, 1, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+s.subnet(2)+`"}}`, "project", "beta")["id"].(string)
	pool := s.want(201, 1, "POST", "/pools", `{"pool": {"loadbalancer_id": "`+own+`", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}`, "project", "beta")["id"].(string)
	if code, out := s.call(1, "POST", "/pools/"+pool+"/members", `{"member": {"address": "10.0.1.7", "protocol_port": 80, "subnet_id": "`+subnet+`"}}`, "project", "beta"); code != http.StatusBadRequest {
		t.Errorf("a member in another project's subnet: %d %v", code, out)
	}
	if code, out := s.call(1, "POST", "/listeners", `{"listener": {"loadbalancer_id": "`+own+`", "protocol": "TCP", "protocol_port": 80, "default_pool_id": "`+ids["pools"]+`"}}`, "project", "beta"); code != http.StatusNotFound {
		t.Errorf("another project's pool: %d %v", code, out)
	}
	// What nobody's is, is the administrators'.
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	err := s.stores[0].Commit(ctx, "test", func(tx *northbound.Tx) error {
		tx.Insert(&nb.LoadBalancer{UUID: uuidOf(90), Name: uuidOf(91), ExternalIDs: map[string]string{"neutron:vip": "10.0.1.200", "enabled": "True"}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if code, out := s.call(1, "GET", "/loadbalancers/"+uuidOf(91), ""); code != http.StatusForbidden {
		t.Errorf("a member sees the provider's: %d %v", code, out)
	}
	if got := s.want(200, 1, "GET", "/loadbalancers/"+uuidOf(91), "", "role", "admin"); got["vip_address"] != "10.0.1.200" || got["name"] != "" {
		t.Errorf("an administrator sees %v", got)
	}
	// A change of its children makes it nobody else's: the provider goes on with it.
	s.want(201, 1, "POST", "/pools", `{"pool": {"loadbalancer_id": "`+uuidOf(91)+`", "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}`, "role", "admin")
	if own, is := s.row(uuidOf(91)).ExternalIDs["sluice:lb"]; is {
		t.Errorf("the provider's load balancer has %s", own)
	}
}

// content are all rows of the database, by table.
func (s *service) content() map[string][]ovsdb.Row {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	snapshot, err := s.stores[1].Barrier(ctx)
	if err != nil {
		s.Fatal(err)
	}
	out := map[string][]ovsdb.Row{}
	for row := range northbound.All[*nb.LoadBalancer](snapshot) {
		out["lb"] = append(out["lb"], row)
	}
	for row := range northbound.All[*nb.LogicalSwitch](snapshot) {
		out["ls"] = append(out["ls"], row)
	}
	for row := range northbound.All[*nb.LogicalRouter](snapshot) {
		out["lr"] = append(out["lr"], row)
	}
	for row := range northbound.All[*nb.LogicalSwitchPort](snapshot) {
		out["lsp"] = append(out["lsp"], row)
	}
	for _, rows := range out {
		slices.SortFunc(rows, func(a, b ovsdb.Row) int { return strings.Compare(a.GetUUID(), b.GetUUID()) })
	}
	return out
}
