package ebpf

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
)

func TestCheckLayout(t *testing.T) {
	build := map[string]*ebpf.MapSpec{"hosts_v2": {}, "route_front_v3": {}, "vteps_v1": {}}
	for _, c := range []struct {
		name  string
		pins  []string
		want  error
		older int
	}{
		{"nothing", nil, nil, 0},
		{"this build's", []string{"hosts_v2", "route_front_v3", "vteps_v1", "prog_fabric_in"}, nil, 0},
		{"newer", []string{"hosts_v3"}, ErrNewerLayout, 0},
		{"a front that is filled again", []string{"hosts_v2", "route_front_v1"}, nil, 0},
		{"rows that this build cannot use", []string{"hosts_v1", "vteps_v0", "route_front_v1"}, nil, 2},
		{"a build that does not know what the rows mean", []string{"vteps_v2"}, ErrNewerLayout, 0},
		{"a map of no version", []string{"others"}, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, pin := range c.pins {
				if err := os.WriteFile(filepath.Join(dir, pin), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if older, err := checkLayout(dir, build); !errors.Is(err, c.want) || len(older) != c.older {
				t.Errorf("got %v, %v, want %v and %d maps", older, err, c.want, c.older)
			}
		})
	}
}

// A cleanup by an older build would leave maps of the newer one.
func TestPinsOfANewerBuild(t *testing.T) {
	dir := t.TempDir()
	for _, pin := range []string{"prog_fabric_in", "hosts_v99"} {
		if err := os.WriteFile(filepath.Join(dir, pin), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if pins, err := Pins(dir, Fabric); pin == "hosts_v99" != errors.Is(err, ErrNewerLayout) || err == nil && len(pins) != 1 {
			t.Errorf("with %s: %v, %v", pin, pins, err)
		}
	}
}
