package metrics

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/pkg/status"
)

func gather(t *testing.T, r *Registry) map[string]string {
	t.Helper()
	families, err := r.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "sluice_") {
			out[f.GetName()] = strings.ToLower(f.GetType().String())
		}
	}
	return out
}

// Two programs have lists of their own, and both what every registry has.
func TestTwoPrograms(t *testing.T) {
	failed := func(c string, err error) { t.Errorf("%s: %v", c, err) }
	var first, second List
	calls := first.Counter("sluice_calls_total", "Calls.", "from")
	took := second.Histogram("sluice_took_seconds", "Time.", []float64{1})
	of := second.Status("the other program (a, b)")

	a := NewRegistry("v1", failed, first)
	a.Add("calls", func(e Emitter) error { e.Emit(calls, 2, "here"); return nil })
	b := NewRegistry("v2", failed, second)
	s := status.NewRegistry(slog.New(slog.DiscardHandler))
	s.SetCondition("a", true, "in-sync", "")
	s.Reporter("x").Set(status.Object{Kind: "vrf", Key: "a", State: status.Error, Reason: "bad-vni"})
	b.AddStatus(of, s)
	b.Observe(took, time.Second)

	for list, r := range map[*List]*Registry{&first: a, &second: b} {
		want := map[string]string{}
		for _, m := range Declared(*list) {
			want[m.Name] = string(m.Type)
		}
		if diff := cmp.Diff(want, gather(t, r)); diff != "" {
			t.Error(diff)
		}
	}
	if help := second[1].Help; !strings.Contains(help, "a component of the other program (a, b) does") {
		t.Error(help)
	}
}

func TestCheck(t *testing.T) {
	for want, declare := range map[string]func(l *List){
		"double name":       func(l *List) { l.Gauge("sluice_a", "A."); l.Gauge("sluice_a", "A.") },
		"bad or":            func(l *List) { l.Gauge("other_a", "A.") },
		"is a gauge":        func(l *List) { l.Gauge("sluice_a_total", "A.") },
		"is a counter":      func(l *List) { l.Counter("sluice_a", "A.") },
		"is no sentence: A": func(l *List) { l.Gauge("sluice_a", "A") },
	} {
		var l List
		declare(&l)
		if err := l.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := Declared().Check(); err != nil {
		t.Error(err)
	}
}

func TestBrokenSourceLeavesTheOthers(t *testing.T) {
	var told []string
	broken := errors.New("map is gone")
	m := NewRegistry("v1", func(c string, err error) {
		if err != nil {
			c += ": " + err.Error()
		}
		told = append(told, c)
	})
	m.Add("drops", func(Emitter) error { return broken })
	for range 3 {
		got := gather(t, m)
		if got["sluice_build_info"] == "" {
			t.Errorf("%v", got)
		}
	}
	broken = nil
	gather(t, m)
	if diff := cmp.Diff([]string{"drops: map is gone", "drops"}, told); diff != "" {
		t.Error(diff)
	}
}
