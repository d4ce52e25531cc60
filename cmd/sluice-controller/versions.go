package main

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// newestMinor is the version of Octavia's API that the records of a real server end with.
const newestMinor = 30

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
	for minor := range newestMinor + 1 {
		v := apiVersion{fmt.Sprintf("v2.%d", minor), "SUPPORTED", "2016-12-11T00:00:00Z", links}
		if minor == newestMinor {
			v.Status = "CURRENT"
		}
		list = append(list, v)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"versions": list}) // a client that has gone needs no answer
}
