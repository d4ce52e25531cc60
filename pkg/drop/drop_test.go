package drop

import "testing"

func TestNamesAndTextsRoundTrip(t *testing.T) {
	for _, r := range All() {
		got, err := Parse(r.String())
		if err != nil || got != r {
			t.Errorf("%d: %q is parsed as %d, %v", uint32(r), r, got, err)
		}
		if r.Explain() == "" || r.Act() == "" {
			t.Errorf("%s has no text", r)
		}
	}
	if len(All()) != Count-1 {
		t.Errorf("%d reasons, want %d", len(All()), Count-1)
	}
	if _, err := Parse("nonsense"); err == nil {
		t.Error("nonsense is a reason")
	}
	for _, r := range []Reason{0, Reason(Count), 9999} {
		if r.String() == "" || r.Explain() == "" || r.Act() == "" {
			t.Errorf("%d has no text", uint32(r))
		}
	}
}
