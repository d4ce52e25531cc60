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
		name string
		pins []string
		want error
	}{
		{"nothing", nil, nil},
		{"this build's", []string{"hosts_v2", "route_front_v3", "vteps_v1", "prog_fabric_in"}, nil},
		{"newer", []string{"hosts_v3"}, ErrNewerLayout},
		{"a front that is filled again", []string{"hosts_v2", "route_front_v1"}, nil},
		{"rows that would be lost", []string{"hosts_v1", "vteps_v1"}, ErrOlderLayout},
		{"a map of no version", []string{"others"}, nil},
		{"a map that is retired", []string{"host_front_v1"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, pin := range c.pins {
				if err := os.WriteFile(filepath.Join(dir, pin), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := checkLayout(dir, build); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
