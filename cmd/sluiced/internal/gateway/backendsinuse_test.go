package gateway

import (
	"maps"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Of the flows to a backend the latest packet counts; those that have ended, or are no flows to
// VIPs, need no path.
func TestBackendsInUse(t *testing.T) {
	one, two := netip.MustParseAddrPort("10.1.0.1:8080"), netip.MustParseAddrPort("[fd01::1]:8080")
	u := backendsInUse{}
	for _, f := range []ebpf.Flow{
		{ToVIP: true, Becomes: one, Idle: time.Hour},
		{ToVIP: true, Becomes: one, Idle: time.Minute},
		{ToVIP: true, Becomes: one, Idle: 2 * time.Hour},
		{ToVIP: true, Becomes: one, Ending: true},
		{Becomes: one},
		{ToVIP: true, Becomes: two, Idle: intent.FlowIdle - time.Second},
	} {
		f.Key = ebpf.FlowKey{VNI: 1001, Protocol: intent.TCP}
		if u.note(f) {
			t.Errorf("%+v is listed", f)
		}
	}
	want := backendsInUse{
		{VNI: 1001, Protocol: intent.TCP, Backend: one}: time.Minute,
		{VNI: 1001, Protocol: intent.TCP, Backend: two}: intent.FlowIdle - time.Second,
	}
	if !maps.Equal(u, want) {
		t.Errorf("%v, want %v", u, want)
	}
}
