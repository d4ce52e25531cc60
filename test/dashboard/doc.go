// Package dashboard has a real Prometheus scrape a lab, and evaluates each query of the dashboard
// of deploy/grafana and each rule of deploy/prometheus there.
//
// It owns one lab with all that there are metrics of: two clouds, load balancers, metadata, BFD, and an
// object of a tenant that cannot be used.
package dashboard
