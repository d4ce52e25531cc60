package metadata_test

import (
	"errors"
	"strings"
	"testing"
)

// People are told of each port how it is served, and of one what its requests need.
func TestWhatPeopleAreTold(t *testing.T) {
	w := shared(t)
	for node, want := range map[string][]string{
		"m1": {"m-red1", "inst-red1", "tap", "tapm-red1"},
		"m2": {"m-red2", "inst-red2", "namespace"},
	} {
		out := w.exec(node, sluicectl(), "metadata", "ports")
		var row string
		for line := range strings.Lines(out) {
			if strings.HasPrefix(line, want[0]+" ") {
				row = line
			}
		}
		for _, word := range want {
			if !strings.Contains(row, word) {
				t.Errorf("%s: %q lacks %q in:\n%s", node, row, word, out)
			}
		}
		// Its heart may beat for the first time after the first answer.
		w.eventually("explain finds all that requests of "+want[0]+" need", func() error {
			out, err := w.Exec(w.Context(), node, sluicectl(), "metadata", "explain", want[1])
			if err == nil && (strings.Contains(out, "MISSING") || !strings.Contains(out, "as instance "+want[1])) {
				err = errors.New(out)
			}
			return err
		})
		for _, socket := range []string{"", " --socket /nonexistent"} { // sluiced's answer, and what is pinned
			out := w.exec(node, "sh", "-c", sluicectl()+socket+" drops --all")
			if !strings.Contains(out, "dropped_fragment") || !strings.Contains(out, "tap_in") {
				t.Errorf("%s%s: %s", node, socket, out)
			}
		}
		if out := w.exec(node, sluicectl(), "diff"); !strings.Contains(out, "no difference") {
			t.Errorf("%s: %s", node, out)
		}
	}
	if out := w.exec("m1", sluicectl(), "metadata", "explain", "tapm-red1"); !strings.Contains(out, "as instance inst-red1") {
		t.Error(out)
	}
	w.exec("m1", "sh", "-c", sluicectl()+" metadata explain nobody; test $? = 3")
}
