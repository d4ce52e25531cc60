package controller

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A small run gives each number.
func TestRun(t *testing.T) {
	program := filepath.Join(t.TempDir(), "sluice-controller")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../../cmd/sluice-controller").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	out := new(strings.Builder)
	results, err := Run(t.Context(), Config{Program: program, Balancers: []int{1, 12}, Stories: mostCallers, Lists: 2, Settle: 50 * time.Millisecond, Out: out})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range results {
		names = append(names, r.Name)
		if r.Value <= 0 && !strings.Contains(r.Name, "memory") && !strings.Contains(r.Name, "CPU") {
			t.Errorf("%+v", r)
		}
	}
	if len(names) != 2*2*5+1+2+2*5 {
		t.Errorf("results %q", names)
	}
	if !strings.Contains(out.String(), "11 load balancers made") {
		t.Errorf("it says %s", out)
	}
}
