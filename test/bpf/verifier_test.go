package bpf_test

import (
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
)

// instructions is how many the verifier of a kernel may look at for a program. It refuses above a
// million: what is left is for kernels that are not tested, which take other paths for equal.
const instructions = 600_000

// TestVerifier prints what the verifier of this kernel did to accept each program, and fails above the
// bound. Package test/vm runs it under other kernels, too.
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
		if v.Instructions > instructions {
			t.Errorf("program %s: the verifier looks at %d instructions, more than %d; split it by a tail call, as overlay_in (docs/decisions)",
				v.Program, v.Instructions, instructions)
		}
	}
}
