package api

import (
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

	"github.com/ovn-sluice/sluice/controlplane/neutron"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

const (
	neutronNet = "2526c68a-5a9e-484c-8e00-0716388f6563"
	subnet4    = "52b6299c-6e38-4226-a275-77370296f257"
	subnet6    = "973a201a-8787-4f6e-9b8f-ab9f93c31f44"
	foreignNet = "0c1b5d4e-0cfb-4ee1-9c5c-8a31d5cd8f7e"
	foreign4   = "6d5a8d9a-3a5b-4c8f-9a51-0f3c1f3d9a11"
)

// fakeNeutron makes and deletes ports in its memory.
type fakeNeutron struct {
	mu    sync.Mutex
	ports map[string]string // names by ID
	asked int
	// refuse answers the requests for ports whose name contains it; made is called for those that are made.
	refuse string
	made   func()
	client *neutron.Client
}

func (f *fakeNeutron) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if r.Method == http.MethodDelete {
		delete(f.ports, r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:])
		w.WriteHeader(http.StatusNoContent)
		return
	}
	var in struct {
		Port struct {
			Name     string
			FixedIPs []struct {
				Subnet  string `json:"subnet_id"`
				Address string `json:"ip_address"`
			} `json:"fixed_ips"`
		}
	}
	if raw, err := io.ReadAll(r.Body); err != nil || json.Unmarshal(raw, &in) != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	if f.refuse != "" && strings.Contains(in.Port.Name, f.refuse) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"NeutronError": {"type": "IpAddressAlreadyAllocated", "message": "IP address 10.7.0.5 already allocated in subnet x", "detail": ""}}`)
		return
	}
	fixed := in.Port.FixedIPs[0]
	if fixed.Address == "" {
		fixed.Address = map[string]string{subnet4: "10.7.0.77", subnet6: "fd00:7::77"}[fixed.Subnet]
	}
	id := uuidOf(700 + f.asked)
	f.ports[id] = in.Port.Name
	if f.made != nil {
		f.made()
	}
	w.WriteHeader(http.StatusCreated)
	_, _ = fmt.Fprintf(w, `{"port": {"id": %q, "fixed_ips": [{"subnet_id": %q, "ip_address": %q}]}}`, id, fixed.Subnet, fixed.Address)
}

// names are those of the ports that are there.
func (f *fakeNeutron) names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Values(f.ports))
}

// withNeutron has the replicas make ports there. A network of Neutron's has a subnet of each family, and so has
// another one that project alpha may not use.
func (s *service) withNeutron() *fakeNeutron {
	s.Helper()
	f := &fakeNeutron{ports: map[string]string{}}
	server := httptest.NewServer(f)
	s.Cleanup(server.Close)
	client, err := neutron.NewClient(neutron.ClientConfig{URL: server.URL})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(client.Close)
	f.client = client
	for i, store := range s.stores {
		mux := http.NewServeMux()
		New(Config{Store: store, Auth: byHeader{}, Ports: client, Networks: map[string][]string{neutronNet: {"alpha"}, uuidOf(1): {"alpha"}}}).Register(mux, "/v2.0/lbaas")
		s.replicas[i] = mux
	}
	s.commit(func(tx *northbound.Tx) error {
		for n, ids := range [][3]string{{neutronNet, subnet4, subnet6}, {foreignNet, foreign4, uuidOf(99)}} {
			lrp := &nb.LogicalRouterPort{UUID: uuidOf(70 + n), Name: fmt.Sprintf("lrp-neutron-%d", n), MAC: "02:00:00:00:07:01",
				Networks:    []string{fmt.Sprintf("10.%d.0.1/24", 7+n), fmt.Sprintf("fd00:%d::1/64", 7+n)},
				ExternalIDs: map[string]string{"neutron:subnet_ids": ids[1] + " " + ids[2]}}
			tx.Insert(lrp)
			tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(72 + n), Name: "to-" + lrp.Name, Type: "router", Options: map[string]string{"router-port": lrp.Name}})
			tx.Insert(&nb.LogicalSwitch{UUID: uuidOf(74 + n), Name: "neutron-" + ids[0], Ports: []string{uuidOf(72 + n)}})
			tx.Insert(&nb.LogicalRouter{UUID: uuidOf(76 + n), Name: fmt.Sprintf("neutron-router-%d", n), Ports: []string{lrp.UUID}})
		}
		return nil
	})
	return f
}

func (s *service) commit(f func(tx *northbound.Tx) error) {
	s.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	if err := s.stores[0].Commit(ctx, "test", f); err != nil {
		s.Fatal(err)
	}
}

// A VIP in a network of Neutron's gets a port there, which lives as long as the load balancer.
func TestPortOfNeutron(t *testing.T) {
	s := newService(t, schema.Northbound)
	f := s.withNeutron()
	lb := s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet4+`", "additional_vips": [{"subnet_id": "`+subnet6+`", "ip_address": "fd00:7::9"}]}}`)
	id := lb["id"].(string)
	if want := []string{"ovn-lb-vip-" + id, "ovn-lb-vip-additional-1-" + id}; !slices.Equal(f.names(), slices.Sorted(slices.Values(want))) {
		t.Errorf("ports %q, want %q", f.names(), want)
	}
	if lb["vip_address"] != "10.7.0.77" || f.ports[lb["vip_port_id"].(string)] != "ovn-lb-vip-"+id || lb["vip_network_id"] != neutronNet {
		t.Errorf("made %v", lb)
	}
	row := s.row(id)
	if row.ExternalIDs["neutron:additional_vips"] != "fd00:7::9" || row.ExternalIDs["ls_refs"] != `{"neutron-`+neutronNet+`": 2}` || row.ExternalIDs["lr_ref"] != "neutron-router-0" {
		t.Errorf("row %v", row.ExternalIDs)
	}
	s.want(204, 1, "DELETE", "/loadbalancers/"+id, "")
	if len(f.names()) != 0 {
		t.Errorf("ports %q are left", f.names())
	}
	// A port of somebody else's stays.
	s.commit(func(tx *northbound.Tx) error {
		tx.Insert(&nb.LogicalSwitchPort{UUID: uuidOf(80), Name: uuidOf(81), ExternalIDs: map[string]string{"neutron:cidrs": "10.7.0.5/24", "neutron:project_id": "alpha"}})
		tx.Update(&nb.LogicalSwitch{UUID: uuidOf(74), Ports: []string{uuidOf(72), uuidOf(80)}}, "ports")
		return nil
	})
	asked := f.asked
	id = s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_port_id": "`+uuidOf(81)+`"}}`)["id"].(string)
	s.want(204, 1, "DELETE", "/loadbalancers/"+id, "")
	// So is a network that Neutron did not write none of its business.
	id = s.want(201, 0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_network_id": "`+uuidOf(1)+`"}}`)["id"].(string)
	s.want(204, 1, "DELETE", "/loadbalancers/"+id, "")
	if f.asked != asked {
		t.Errorf("Neutron was asked %d times for what it does not make", f.asked-asked)
	}
}

// No port is made for what is refused, none is left of what fails afterwards, and none goes while it is not
// known what became of its load balancer.
func TestPortOfNeutronAfterFailures(t *testing.T) {
	s := newService(t, schema.Northbound)
	f := s.withNeutron()
	for body, status := range map[string]int{
		`"vip_subnet_id": "` + foreign4 + `"`:                                                           400,
		`"vip_network_id": "` + foreignNet + `"`:                                                        400,
		`"vip_subnet_id": "` + uuidOf(98) + `"`:                                                         400,
		`"vip_subnet_id": "` + subnet4 + `", "project_id": "beta"`:                                      403,
		`"vip_subnet_id": "` + subnet4 + `", "provider": "x"`:                                           400,
		`"vip_subnet_id": "` + subnet4 + `", "additional_vips": [{"subnet_id": "` + subnet4 + `"}]`:     400,
		`"vip_subnet_id": "` + subnet4 + `", "additional_vips": [{"subnet_id": "` + foreign4 + `"}]`:    400,
		`"vip_subnet_id": "` + subnet4 + `", "additional_vips": [{"subnet_id": "` + s.subnet(1) + `"}]`: 400,
	} {
		if code, out := s.call(0, "POST", "/loadbalancers", `{"loadbalancer": {`+body+`}}`); code != status {
			t.Errorf("%s: %d %v", body, code, out)
		}
	}
	if f.asked != 0 {
		t.Errorf("Neutron was asked %d times", f.asked)
	}

	f.refuse = "additional"
	code, out := s.call(0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet4+`", "additional_vips": [{"subnet_id": "`+subnet6+`"}]}}`)
	if want := "Provider 'ovn' reports error: IP address 10.7.0.5 already allocated in subnet x"; code != 500 || out["faultstring"] != want {
		t.Errorf("refused by Neutron: %d %v", code, out)
	}
	f.refuse = ""
	f.made = func() { // the network goes while its port is made
		s.commit(func(tx *northbound.Tx) error { tx.Delete(&nb.LogicalRouter{UUID: uuidOf(76)}); return nil })
	}
	if code, out := s.call(0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet4+`"}}`); code != 400 {
		t.Errorf("without its subnet: %d %v", code, out)
	}
	if len(f.names()) != 0 || f.asked != 2+1+2 {
		t.Errorf("ports %q are left, after %d calls", f.names(), f.asked)
	}
}

// A port goes with a load balancer that was not committed for certain, and with no other one.
func TestPortOfNeutronAfterOutcomes(t *testing.T) {
	s := newService(t, schema.Northbound)
	f := s.withNeutron()
	a := New(Config{Store: s.stores[0], Auth: byHeader{}, Ports: f.client})
	for err, left := range map[error]int{
		nil: 1, fmt.Errorf("commit: %w", ovsdb.ErrOutcomeUnknown): 1, fmt.Errorf("%w: %w", ovsdb.ErrOutcomeUnknown, northbound.ErrBusy): 1,
		northbound.ErrUnavailable: 0, northbound.ErrBusy: 0, errPolicy: 0,
	} {
		f.ports = map[string]string{"p1": "ovn-lb-vip-x"}
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // the client is gone
		a.settlePorts(&request{Request: httptest.NewRequestWithContext(ctx, "POST", "/", nil), made: madePorts{"ovn-lb-vip-x": {ID: "p1"}}}, err)
		if len(f.names()) != left {
			t.Errorf("after %v: ports %q", err, f.names())
		}
	}
}

func TestWithoutNeutron(t *testing.T) {
	s := newService(t, schema.Northbound)
	s.withNeutron()
	for i, store := range s.stores {
		mux := http.NewServeMux()
		New(Config{Store: store, Auth: byHeader{}, Networks: map[string][]string{neutronNet: {"alpha"}}}).Register(mux, "/v2.0/lbaas")
		s.replicas[i] = mux
	}
	code, out := s.call(0, "POST", "/loadbalancers", `{"loadbalancer": {"vip_subnet_id": "`+subnet4+`"}}`)
	if want := "Validation failure: Network " + neutronNet + " is Neutron's, which allocates its addresses: create a port there, and give its ID as vip_port_id."; code != 400 || out["faultstring"] != want {
		t.Errorf("%d %v", code, out)
	}
}
