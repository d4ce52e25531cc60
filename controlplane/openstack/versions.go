package openstack

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	Updated string        `json:"updated"`
	Links   []versionLink `json:"links"`
}

// versions answers the discovery of every client alike. A client puts the address in it
// before its paths; the address is that of the request.
func versions(w http.ResponseWriter, r *http.Request, root string) {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	links := []versionLink{{"self", fmt.Sprintf("%s://%s%s/v2", scheme, r.Host, root)}}
	var list []apiVersion
	for minor, at := range updated {
		v := apiVersion{fmt.Sprintf("v2.%d", minor), "SUPPORTED", at, links}
		if minor == len(updated)-1 {
			v.Status = "CURRENT"
		}
		list = append(list, v)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"versions": list}) // a client that has gone needs no answer
}
