// Package metadataproxy is the process "sluiced metadata", which answers metadata requests beside sluiced, and starts
// itself anew in place.
package metadataproxy
