package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// The story of a load balancer by gophercloud, a client that others use.
func TestGophercloud(t *testing.T) {
	s := newService(t, schema.Northbound)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("project", "alpha")
		s.replicas[len(r.URL.Path)%2].ServeHTTP(w, r) // each path at one of the two
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	client := &gophercloud.ServiceClient{ProviderClient: &gophercloud.ProviderClient{TokenID: "none"}, Endpoint: server.URL + "/", ResourceBase: server.URL + "/v2.0/"}

	lb, err := loadbalancers.Create(ctx, client, loadbalancers.CreateOpts{Name: "lb", VipSubnetID: s.subnet(1), Tags: []string{"a"}}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pools.Create(ctx, client, pools.CreateOpts{Name: "p", LoadbalancerID: lb.ID, Protocol: pools.ProtocolUDP, LBMethod: pools.LBMethodSourceIpPort,
		Persistence: &pools.SessionPersistence{Type: "SOURCE_IP"}}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := listeners.Create(ctx, client, listeners.CreateOpts{LoadbalancerID: lb.ID, Protocol: listeners.ProtocolUDP, ProtocolPort: 53, DefaultPoolID: pool.ID}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	weight := 5
	member, err := pools.CreateMember(ctx, client, pool.ID, pools.CreateMemberOpts{Address: "10.0.2.9", ProtocolPort: 5353, SubnetID: s.subnet(2), Weight: &weight}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	if member.Weight != 5 || lb.Tags[0] != "a" || listener.DefaultPoolID != pool.ID || pool.Persistence.Type != "SOURCE_IP" {
		t.Errorf("made: %+v %+v %+v %+v", lb, pool, listener, member)
	}
	row := s.row(lb.ID)
	if row.Vips[lb.VipAddress+":53"] != "10.0.2.9:5353" || row.Options["affinity_timeout"] != "360" || *row.Protocol != "udp" {
		t.Errorf("row %+v", row)
	}
	name := "other"
	if lb, err = loadbalancers.Update(ctx, client, lb.ID, loadbalancers.UpdateOpts{Name: &name}).Extract(); err != nil || lb.Name != name {
		t.Fatalf("%+v %v", lb, err)
	}
	pages, err := loadbalancers.List(client, loadbalancers.ListOpts{Name: name}).AllPages(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if all, err := loadbalancers.ExtractLoadBalancers(pages); err != nil || len(all) != 1 || len(all[0].Listeners) != 1 || len(all[0].Pools) != 1 {
		t.Errorf("the list is %+v, %v", all, err)
	}
	if err := loadbalancers.Delete(ctx, client, lb.ID, loadbalancers.DeleteOpts{}).ExtractErr(); !gophercloud.ResponseCodeIs(err, http.StatusBadRequest) {
		t.Errorf("delete with children: %v", err)
	}
	if err := pools.DeleteMember(ctx, client, pool.ID, member.ID).ExtractErr(); err != nil {
		t.Error(err)
	}
	if err := loadbalancers.Delete(ctx, client, lb.ID, loadbalancers.DeleteOpts{Cascade: true}).ExtractErr(); err != nil {
		t.Error(err)
	}
	if _, err := loadbalancers.Get(ctx, client, lb.ID).Extract(); !gophercloud.ResponseCodeIs(err, http.StatusNotFound) {
		t.Errorf("after the delete: %v", err)
	}
	if s.row(lb.ID) != nil {
		t.Error("a row is left")
	}
}
