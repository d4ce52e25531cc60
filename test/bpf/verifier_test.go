package bpf_test

import (
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
)

// TestVerifier prints what the verifier of this kernel did to accept each program.
// Package test/vm compares that with what is recorded.
func TestVerifier(t *testing.T) {
	all, err := ebpf.Verify(node(), fewRows)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range all {
		t.Logf("verified %s %d %d %d", v.Program, v.Instructions, v.TotalStates, v.PeakStates)
	}
}
