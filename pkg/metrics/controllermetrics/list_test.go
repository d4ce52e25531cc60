package controllermetrics

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestEachIsFilled(t *testing.T) {
	if err := List().Check(); err != nil {
		t.Error(err)
	}
	s := status.NewRegistry(slog.New(slog.DiscardHandler))
	s.SetCondition("nb", true, "in-sync", "")
	s.Reporter("x").Set(status.Object{Kind: "a", Key: "b", State: status.Error, Reason: "missing", Error: "c"})
	m := New("v", func(collector string, err error) { t.Errorf("%s: %v", collector, err) }, s, func() Store { return Store{1, 2, 3, true} })
	m.Answered(http.MethodGet, 200, time.Millisecond)
	families, err := m.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, f := range families {
		have[f.GetName()] = true
	}
	for _, d := range List() {
		if !have[d.Name] {
			t.Errorf("%s has no value", d.Name)
		}
	}
}
