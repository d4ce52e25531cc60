package main

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// TestWriteAdoption: what is said of what is there, what was done, and what stays.
func TestWriteAdoption(t *testing.T) {
	vrf := status.AdoptedObject{Object: "VRF 1001: devices vrf-1001"}
	done := vrf
	done.Adopted = true
	failed := vrf
	failed.Error = "no"
	shown := vrf
	shown.Evidence = "veth-vrf-1001 in it is a pair with veth-ovs-1001"
	for _, row := range []struct {
		name     string
		answer   status.Adoption
		complete bool
		want     string
	}{
		{"nothing", status.Adoption{}, true, "nothing of another agent is here\n"},
		{"nothing, not all seen", status.Adoption{}, false, ""},
		{"an operator's", status.Adoption{Foreign: []string{"vrf-7: it is no VRF with table 7"}}, true,
			"leaves vrf-7: it is no VRF with table 7\nnothing of another agent is here\n"},
		{"listed", status.Adoption{Objects: []status.AdoptedObject{vrf}}, true,
			"would adopt VRF 1001: devices vrf-1001\nnothing was changed; --apply adopts them\n"},
		{"listed with evidence", status.Adoption{Objects: []status.AdoptedObject{shown}}, true,
			"would adopt VRF 1001: devices vrf-1001\n  it is the agent's: " + shown.Evidence + "\nnothing was changed; --apply adopts them\n"},
		{"done", status.Adoption{Applied: true, Objects: []status.AdoptedObject{done, failed}}, false, "adopted VRF 1001: devices vrf-1001\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			if err := writeAdoption(&out, row.answer, row.complete); err != nil || out.String() != row.want {
				t.Errorf("%q, %v; want %q", out.String(), err, row.want)
			}
		})
	}
}
