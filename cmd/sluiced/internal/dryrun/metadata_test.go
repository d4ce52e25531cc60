package dryrun

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func said(changes []status.Change) (out []string) {
	for _, c := range changes {
		out = append(out, c.Action+" "+c.Table+" "+c.Key+" "+c.Error)
	}
	return out
}

// What is there of others is named as in the way when something is to be made, and left out
// of what goes.
func TestPlannedParts(t *testing.T) {
	parts := []namespace.Part{{Kind: "namespace", Name: "ovnmeta-a", There: true}, {Kind: "device", Name: "tap0 and tap1", There: true, Ours: true}, {Kind: "port", Name: "tap0"}}
	if got := said(made(parts, "foreign")); !slices.Equal(got, []string{"add namespace ovnmeta-a foreign", "add port tap0 "}) {
		t.Errorf("made: %q", got)
	}
	if got := said(removed(parts)); !slices.Equal(got, []string{"delete device tap0 and tap1 "}) {
		t.Errorf("removed: %q", got)
	}
}

// Another number or answer of a VM is a change, a new VM an addition, and a VM that is gone a deletion.
func TestPlannedVMs(t *testing.T) {
	mac := intent.MAC{0xfa, 0x16, 0x3e, 0, 0, 5}
	four := taps.Source{IfIndex: 7, MAC: mac, Addr: netip.MustParseAddr("10.0.0.5"), Number: 1}
	again := four
	again.Number = 9
	six := taps.Source{IfIndex: 7, MAC: mac, Number: 2}
	gone := taps.Source{IfIndex: 8, VLAN: 3, MAC: mac, Number: 3}
	got := said(vmChanges([]taps.Source{again, six}, []taps.Source{four, gone}, map[uint32]string{7: "tapa"}))
	want := []string{
		"change vm 10.0.0.5 of fa:16:3e:00:00:05 on tapa ", "delete vm IPv6 of fa:16:3e:00:00:05 on device 8, VLAN 3 ", "add vm IPv6 of fa:16:3e:00:00:05 on tapa ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
