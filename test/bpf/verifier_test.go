package bpf_test

import (
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
)

// TestVerifier prints what the verifier of this kernel did to accept each program.
// Package test/vm compares that with what is recorded.
func TestVerifier(t *testing.T) {
	all, err := ebpf.Verify(node(), fewRows)
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := taps.Verify()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(all, metadata...) {
		t.Logf("verified %s %d %d %d", v.Program, v.Instructions, v.TotalStates, v.PeakStates)
	}
}
