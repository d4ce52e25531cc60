package main

import (
	"log/slog"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/settings"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// Neighbours that keep the routes of a node without its VTEP send to where nobody takes it.
func TestWentWithoutVTEP(t *testing.T) {
	for _, tc := range []struct {
		vtep string
		want bool
	}{{"127.0.0.1", true}, {"::1", true}, {"192.0.2.77", false}, {"2001:db8::77", false}} {
		n := &node{d: &daemon{cfg: config.Default(), log: slog.New(slog.DiscardHandler)}, id: settings.Identity{VTEP: netip.MustParseAddr(tc.vtep)}}
		k := n.lookBack()
		k.device, k.pinned = nil, nil // of this part all is well
		if got := n.went(k); got != tc.want {
			t.Errorf("%s: %t, %v", tc.vtep, got, k.vtep)
		}
	}
}
