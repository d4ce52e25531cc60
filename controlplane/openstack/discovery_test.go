package openstack

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// discovery is what a client asks before its first request, at an address that it is told, and how it makes the
// address of that request from the answer.
type discovery struct {
	client string
	told   string // the path of that address
	// asks is the path of the versions document. A client that asks for none adds the version to the address,
	// if it does not end with it.
	asks    string
	request string // the first request's path
	list    string // what its answer has
}

// discoveries are from the real clients: python-octaviaclient 3.10 and gophercloud 2 ask for no document; openstacksdk
// 4.4 and keystoneauth 5.10 ask at the address that they are told, and follow the links.
var discoveries = []discovery{
	{client: "octaviaclient, one address for all", told: "", request: "/lbaas/loadbalancers", list: "loadbalancers"},
	{client: "octaviaclient, an address with the version", told: "/v2.0", request: "/lbaas/pools", list: "pools"},
	{client: "octaviaclient, Keystone's catalogue", told: "/load-balancer", request: "/lbaas/listeners", list: "listeners"},
	{client: "gophercloud, load balancers", told: "/load-balancer", request: "/lbaas/loadbalancers", list: "loadbalancers"},
	{client: "gophercloud, networks", told: "/network", request: "/networks", list: "networks"},
	{client: "openstacksdk, load balancers, one address for all", told: "", asks: "/", request: "/lbaas/loadbalancers", list: "loadbalancers"},
	{client: "openstacksdk, load balancers, with the version", told: "/v2.0", asks: "/v2.0", request: "/lbaas/loadbalancers", list: "loadbalancers"},
	{client: "openstacksdk, load balancers, Keystone's catalogue", told: "/load-balancer", asks: "/load-balancer", request: "/lbaas/loadbalancers", list: "loadbalancers"},
	{client: "openstackclient, networks, one address for all", told: "", asks: "/", request: "/networks?name=x", list: "networks"},
	{client: "openstackclient, networks, with the version", told: "/v2.0", asks: "/v2.0", request: "/subnets?name=x", list: "subnets"},
	{client: "openstackclient, networks, Keystone's catalogue", told: "/network", asks: "/network/", request: "/ports?name=x", list: "ports"},
	{client: "openstackclient, networks, Keystone's catalogue with the version", told: "/network/v2.0", asks: "/network/v2.0", request: "/extensions", list: "extensions"},
}

// Each client finds what it looks for, with and without Keystone: where it asks there is a document, and the link of the
// newest version of it leads to the API.
func TestDiscovery(t *testing.T) {
	p := newReplay(t, schema.Northbound, nil)
	for _, d := range discoveries {
		base := strings.TrimSuffix(d.told, "/v2.0") + "/v2.0"
		if d.asks != "" {
			w := p.call(http.MethodGet, d.asks, "", map[string]string{"Accept": "application/json"})
			var document struct {
				Versions []struct {
					ID, Status string
					Links      []struct{ Rel, Href string }
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &document); w.Code != http.StatusOK || err != nil {
				t.Errorf("%s: %s: %d %s", d.client, d.asks, w.Code, w.Body)
				continue
			}
			for _, v := range document.Versions {
				if v.Status == "CURRENT" && strings.HasPrefix(v.ID, "v2.") && v.Links[0].Rel == "self" {
					base = strings.TrimSuffix(strings.TrimPrefix(v.Links[0].Href, "http://"+host), "/")
				}
			}
		}
		w := p.call(http.MethodGet, base+d.request, "", map[string]string{"Accept": "application/json", "X-Auth-Token": "member"})
		var got map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != http.StatusOK || err != nil || got[d.list] == nil {
			t.Errorf("%s: %s%s: %d %s", d.client, base, d.request, w.Code, w.Body)
		}
	}
}
