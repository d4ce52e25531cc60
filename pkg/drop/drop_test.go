package drop

import "testing"

func TestNamesAndTexts(t *testing.T) {
	names := map[string]bool{}
	for _, r := range All() {
		if names[r.String()] {
			t.Errorf("%d: the name %q is another's too", uint32(r), r)
		}
		names[r.String()] = true
		if r.Explain() == "" || r.Act() == "" {
			t.Errorf("%s has no text", r)
		}
	}
	if len(All()) != Count-1 {
		t.Errorf("%d reasons, want %d", len(All()), Count-1)
	}
	for _, r := range []Reason{0, Reason(Count), 9999} {
		if r.String() == "" || r.Explain() == "" || r.Act() == "" {
			t.Errorf("%d has no text", uint32(r))
		}
	}
}
