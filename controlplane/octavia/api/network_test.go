package api

import (
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
)

// subnetOf is the ID of a network's subnet.
func subnetOf(t *testing.T, s *northbound.Snapshot, id, cidr string) string {
	t.Helper()
	n, ok := network.Find(s, id)
	if !ok {
		t.Fatalf("there is no network %s", id)
	}
	for _, s := range network.Subnets(s, n) {
		if s.CIDR.String() == cidr {
			return s.ID
		}
	}
	t.Fatalf("network %s has no subnet %s", id, cidr)
	return ""
}
