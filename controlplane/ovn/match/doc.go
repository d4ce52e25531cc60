// Package match takes matches of OVN's language (ovn-sb(5), Logical_Flow.match) apart: into
// tokens, and the address sets that they name. What a match means is for package acl; the rows
// that it needs are for package ovn.
package match
