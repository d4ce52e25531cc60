// Package octavia keeps Octavia's load balancers in OVN's Northbound database, as
// ovn-octavia-provider does, and what that one keeps in a database of its own beside it.
//
// A Balancer is a load balancer in a transaction: all its rows (package rowform). It is changed,
// and saved as a whole: rows come and go with their protocols, and where the rows are associated
// follows from their VIPs, their members and the routers that serve these.
package octavia
