package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/listeners"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/loadbalancers"
	"github.com/gophercloud/gophercloud/v2/openstack/loadbalancer/v2/pools"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// The story of a load balancer by gophercloud, a client that others use: each call at the other replica
// than the one before.
func TestGophercloud(t *testing.T) {
	s := newService(t, schema.Northbound)
	var calls atomic.Uint64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("project", "alpha")
		s.replicas[calls.Add(1)%2].ServeHTTP(w, r)
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
	other, err := pools.CreateMember(ctx, client, pool.ID, pools.CreateMemberOpts{Name: "m2", Address: "10.0.1.9", ProtocolPort: 5353, SubnetID: s.subnet(1)}).Extract()
	if err != nil {
		t.Fatal(err)
	}
	row := s.row(lb.ID)
	if row.Vips[lb.VipAddress+":53"] != "10.0.2.9:5353,10.0.1.9:5353" || row.Options["affinity_timeout"] != "360" || *row.Protocol != "udp" {
		t.Errorf("row %+v", row)
	}
	for range 2 {
		if got, err := loadbalancers.Get(ctx, client, lb.ID).Extract(); err != nil || got.VipPortID != lb.VipPortID || got.Listeners[0].ID != listener.ID {
			t.Errorf("shown: %+v %v", got, err)
		}
		if got := all(t, pools.ExtractMembers)(pools.ListMembers(client, pool.ID, pools.ListMembersOpts{Name: "m2"}).AllPages(ctx)); len(got) != 1 || got[0].ID != other.ID {
			t.Errorf("members named m2: %+v", got)
		}
	}
	name := "other"
	if lb, err = loadbalancers.Update(ctx, client, lb.ID, loadbalancers.UpdateOpts{Name: &name}).Extract(); err != nil || lb.Name != name {
		t.Fatalf("%+v %v", lb, err)
	}
	if got, err := listeners.Update(ctx, client, listener.ID, listeners.UpdateOpts{Name: &name}).Extract(); err != nil || got.Name != name {
		t.Errorf("listener %+v %v", got, err)
	}
	if got, err := pools.Update(ctx, client, pool.ID, pools.UpdateOpts{Name: &name}).Extract(); err != nil || got.Name != name {
		t.Errorf("pool %+v %v", got, err)
	}
	weight = 3
	if got, err := pools.UpdateMember(ctx, client, pool.ID, member.ID, pools.UpdateMemberOpts{Weight: &weight}).Extract(); err != nil || got.Weight != 3 {
		t.Errorf("member %+v %v", got, err)
	}
	if got := all(t, loadbalancers.ExtractLoadBalancers)(loadbalancers.List(client, loadbalancers.ListOpts{Name: name}).AllPages(ctx)); len(got) != 1 ||
		len(got[0].Listeners) != 1 || len(got[0].Pools) != 1 {
		t.Errorf("load balancers: %+v", got)
	}
	if got := all(t, listeners.ExtractListeners)(listeners.List(client, listeners.ListOpts{Name: name}).AllPages(ctx)); len(got) != 1 || got[0].DefaultPoolID != pool.ID {
		t.Errorf("listeners: %+v", got)
	}
	if got := all(t, pools.ExtractPools)(pools.List(client, pools.ListOpts{Name: name}).AllPages(ctx)); len(got) != 1 || len(got[0].Members) != 2 {
		t.Errorf("pools: %+v", got)
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

// all are the objects of a list.
func all[T any](t *testing.T, extract func(pagination.Page) ([]T, error)) func(pagination.Page, error) []T {
	return func(pages pagination.Page, err error) []T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		list, err := extract(pages)
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
}
