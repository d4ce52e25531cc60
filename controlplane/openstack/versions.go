package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/ovn-sluice/sluice/controlplane/rest"
)

// updated has when each minor version of Octavia's API came, from v2.0 on.
var updated = []string{
	"2016-12-11T00:00:00Z", "2018-04-20T00:00:00Z", "2018-07-31T00:00:00Z", "2018-12-18T00:00:00Z", "2018-12-19T00:00:00Z",
	"2019-01-21T00:00:00Z", "2019-01-25T00:00:00Z", "2018-01-25T12:00:00Z", "2019-02-12T00:00:00Z", "2019-03-04T00:00:00Z",
	"2019-03-05T00:00:00Z", "2019-06-24T00:00:00Z", "2019-09-11T00:00:00Z", "2019-09-13T00:00:00Z", "2019-11-10T00:00:00Z",
	"2020-03-10T00:00:00Z", "2020-03-15T00:00:00Z", "2020-04-29T00:00:00Z", "2020-04-29T01:00:00Z", "2020-05-12T00:00:00Z",
	"2020-08-02T00:00:00Z", "2020-09-03T00:00:00Z", "2020-09-04T00:00:00Z", "2020-09-07T00:00:00Z", "2020-10-15T00:00:00Z",
	"2021-10-02T00:00:00Z", "2022-08-29T00:00:00Z", "2023-05-05T00:00:00Z", "2023-11-08T00:00:00Z", "2024-10-15T00:00:00Z",
	"2025-02-26T00:00:00Z",
}

type versionLink struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

type apiVersion struct {
	ID      string        `json:"id"`
	Status  string        `json:"status"`
	Updated string        `json:"updated,omitempty"`
	Links   []versionLink `json:"links"`
}

// balancerVersions are those of Octavia's API at a base address. A client without Keystone finds the same
// for the networks: it takes one address for every service.
func balancerVersions(base string) (list []apiVersion) {
	links := []versionLink{{"self", base + "/v2"}}
	for minor, at := range updated {
		v := apiVersion{ID: fmt.Sprintf("v2.%d", minor), Status: "SUPPORTED", Updated: at, Links: links}
		if minor == len(updated)-1 {
			v.Status = "CURRENT"
		}
		list = append(list, v)
	}
	return list
}

// networkVersions is the one of Neutron's.
func networkVersions(base string) []apiVersion {
	return []apiVersion{{ID: "v2.0", Status: "CURRENT", Links: []versionLink{{"self", base + "/v2.0/"}}}}
}

// discover answers with the versions at the address of the request: a client puts what it finds before its
// paths.
func discover(w http.ResponseWriter, r *http.Request, root string, list func(base string) []apiVersion) {
	w.Header().Set("Content-Type", rest.JSON)
	_ = json.NewEncoder(w).Encode(map[string]any{"versions": list(rest.Origin(r) + root)}) // a client that has gone needs no answer
}
