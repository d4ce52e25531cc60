// Package api answers Octavia's REST API from OVN's Northbound database: load balancers,
// listeners, pools and members. Each of them is a file: its fields, its checks, its transactions.
//
// Errors have Octavia's texts, as its clients print them, and tests of others look for them.
package api
