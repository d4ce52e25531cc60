package pinned

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/cilium/ebpf"
)

// Verified is what the kernel's verifier did to accept a program.
type Verified struct {
	Program string
	// Instructions were looked at, of the million that it allows: one counts as
	// often as a path leads to it.
	Instructions int
	// States of registers and stack that it wrote down, in all and at one time.
	TotalStates, PeakStates int
}

// Verify loads the programs of an object into the kernel, and lets go of them.
func Verify(spec *ebpf.CollectionSpec) ([]Verified, error) {
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var out []Verified
	for name, prog := range c.Programs {
		v, err := parseVerified(prog.VerifierLog)
		if err != nil {
			return nil, fmt.Errorf("program %s: %w", name, err)
		}
		v.Program = name
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b Verified) int { return cmp.Compare(a.Program, b.Program) })
	return out, nil
}

// verifiedRE is the last line of a verifier's log, print_verification_stats in
// the kernel's kernel/bpf/verifier.c.
var verifiedRE = regexp.MustCompile(`processed (\d+) insns \(limit \d+\) max_states_per_insn \d+ total_states (\d+) peak_states (\d+)`)

func parseVerified(log string) (v Verified, err error) {
	m := verifiedRE.FindStringSubmatch(log)
	if m == nil {
		return v, fmt.Errorf("no statistics in the verifier's log %q", log)
	}
	for i, to := range []*int{&v.Instructions, &v.TotalStates, &v.PeakStates} {
		if *to, err = strconv.Atoi(m[i+1]); err != nil {
			return v, err
		}
	}
	return v, nil
}
