package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	var r report
	r.add("fast", 3, "x", atMost(3.5))
	r.add("slow", 7, "x", atMost(3.5))
	r.note("a remark")
	r.add("faster", 1.4, "x", atLeast(1.3))
	r.add("slower", 0.65, "x", atLeast(1.3))
	r.add("memory", 100, "MiB", noGoal)
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
		name, goal string
		met        bool
	}{{"fast", "<= 3.5", true}, {"slow", "<= 3.5", false}, {"faster", ">= 1.3", true}, {"slower", ">= 1.3", false}, {"memory", "", true}} {
		if g := got[i]; g["name"] != want.name || g["goal"] != want.goal || g["met"] != want.met || len(g) != 5 {
			t.Errorf("row %d is %v, want %+v", i, g, want)
		}
	}
	var out bytes.Buffer
	r.print(&out)
	for _, want := range []string{"100.0 % over the goal; a remark", "50.0 % under the goal", "5 results, 2 goals missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
