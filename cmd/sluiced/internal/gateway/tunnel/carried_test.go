package tunnel

import (
	"log/slog"
	"net/netip"
	"testing"
)

// Neighbours that keep the routes of a node without its VTEP send to where nobody takes it.
func TestWentWithoutVTEP(t *testing.T) {
	for _, tc := range []struct {
		vtep string
		want bool
	}{{"127.0.0.1", true}, {"::1", true}, {"192.0.2.77", false}, {"2001:db8::77", false}} {
		tn := New(Config{VTEP: netip.MustParseAddr(tc.vtep)}, nil, nil, nil, nil, nil, slog.New(slog.DiscardHandler))
		k := tn.LookBack()
		k.device, k.pinned = nil, nil // of this part all is well
		if got := k.Forwarded(slog.New(slog.DiscardHandler)); got != tc.want {
			t.Errorf("%s: %t, %v", tc.vtep, got, k.vtep)
		}
	}
}
