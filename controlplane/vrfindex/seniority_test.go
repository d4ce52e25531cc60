package vrfindex

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Routers are in the order in which they came to a VNI, over a restart, too.
func TestSeniority(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	s := open(t, path, nil)
	order := func(s *Store, what string, given []string, want ...string) {
		t.Helper()
		if got := s.Seniority(1001, given); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	index(t, s, 1001, 1)
	order(s, "one", []string{"m"}, "m")
	order(s, "two newcomers", []string{"a", "m", "z"}, "m", "a", "z")
	commit(t, s)
	s = open(t, path, nil)
	order(s, "after a restart", []string{"a", "b", "m", "z"}, "m", "a", "z", "b")
	// Not all rows are there yet: who is missing keeps its place.
	order(s, "a part", []string{"b"}, "b")
	order(s, "all", []string{"a", "b", "m", "z"}, "m", "a", "z", "b")
	s.Leave(1001, "m")
	order(s, "it leaves and comes back", []string{"a", "m"}, "a", "m")
	s.Retain(func(intent.VNI) bool { return true }, func(_ intent.VNI, r string) bool { return r == "m" })
	order(s, "who went while nobody looked", []string{"a", "m"}, "m", "a")
	s.Release(1001)
	index(t, s, 1001, 2)
	order(s, "after the last one", []string{"a", "m"}, "a", "m")
}

// What could not be kept before a restart is told of again after it: the data plane shows
// an index that the file lacks.
func TestNotKeptIsToldAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	s := open(t, path, map[intent.VNI]uint16{1001: 3})
	s.WriteBy(func(string, []byte) error { return errors.New("no space left on device") })
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan error, 1)
	ended := make(chan error)
	go func() { ended <- s.Run(ctx, func(err error) { told <- err }) }()
	if err := <-told; err == nil {
		t.Error("the index was called kept")
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s = open(t, path, map[intent.VNI]uint16{1001: 3})
	commit(t, s)
	s = open(t, path, map[intent.VNI]uint16{1001: 3})
	s.WriteBy(func(string, []byte) error { t.Error("a file that has all was written again"); return nil })
	commit(t, s)
}
