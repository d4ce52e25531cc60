package pinned

import "testing"

func TestParseVerified(t *testing.T) {
	const log = "processed 187124 insns (limit 1000000) max_states_per_insn 24 total_states 8582 peak_states 2344 mark_read 87\n"
	v, err := parseVerified(log)
	if err != nil || v.Instructions != 187124 || v.TotalStates != 8582 || v.PeakStates != 2344 {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := parseVerified("func#0 @0\n"); err == nil {
		t.Errorf("no statistics: %+v", v)
	}
}
