package plane

import (
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Evicted sessions are a problem for as long as answers of theirs may come.
func TestEvictedSessionsAreAProblem(t *testing.T) {
	for ev, want := range map[ebpf.Evictions]string{
		{}: "", {Near: true}: "", {Near: true, Evicting: true, Held: true}: "the map of sessions is full, and evicts those that were idle for longest",
		{Held: true, Translated: 3}: "the map of sessions was full within two hours",
	} {
		got := evicted(ev, "vms")
		switch {
		case want == "" && len(got) == 0:
		case len(got) != 1 || got[0].Error != want || got[0].State != status.Warning || got[0].Reason != reason.SessionsEvicted || got[0].Key != "vms":
			t.Errorf("%+v: %+v, want %q", ev, got, want)
		}
	}
}
