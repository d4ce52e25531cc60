package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	r := report{condition: "2 processors"}
	r.add("fast", 3, "x", atMost(3.5))
	r.add("slow", 7, "x", atMost(3.5))
	r.note("a remark")
	r.add("faster", 1.4, "x", atLeast(1.3))
	r.add("slower", 0.65, "x", atLeast(1.3))
	r.add("memory", 100, "MiB", noGoal)
	r.where("all else stopped")
	file := filepath.Join(t.TempDir(), "bench.json")
	if err := r.write(file); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name, goal, condition string
		met                   any
	}{
		{"fast", "<= 3.5", "2 processors", true}, {"slow", "<= 3.5", "2 processors", false},
		{"faster", ">= 1.3", "2 processors", true}, {"slower", ">= 1.3", "2 processors", false},
		{"memory", "", "2 processors; all else stopped", nil},
	} {
		met, there := got[i]["met"]
		if g := got[i]; g["name"] != want.name || g["goal"] != want.goal || g["condition"] != want.condition || !there || met != want.met || len(g) != 6 {
			t.Errorf("row %d is %v, want %+v", i, g, want)
		}
	}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"100.0 % over the goal; a remark", "50.0 % under the goal", "5 results, 2 of 4 goals missed", "MiB           -    2 processors; all else stopped"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

// A part ends when its time is over, also one that does not listen.
func TestBounded(t *testing.T) {
	ctx := t.Context()
	if err := bounded(ctx, time.Hour, time.Hour, func(context.Context) error { return nil }); err != nil {
		t.Errorf("in time: %v", err)
	}
	err := bounded(ctx, time.Millisecond, time.Hour, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
	if err == nil || !strings.Contains(err.Error(), "not done within 1ms") || errors.Is(err, errStuck) {
		t.Errorf("too late: %v", err)
	}
	end := make(chan struct{})
	defer close(end)
	if err := bounded(ctx, time.Millisecond, time.Millisecond, func(context.Context) error { <-end; return nil }); !errors.Is(err, errStuck) {
		t.Errorf("stuck: %v", err)
	}
}

// Every part has a limit, and says under what it holds, or its rows do.
func TestParts(t *testing.T) {
	for _, p := range parts {
		if p.limit <= 0 || p.condition == "" && p.name != "health" && p.name != "forwarding" {
			t.Errorf("part %s: limit %s, condition %q", p.name, p.limit, p.condition)
		}
	}
}
