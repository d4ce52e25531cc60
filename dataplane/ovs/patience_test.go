package ovs

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What takes longer than ovs-ofctl is given at first is done in the end.
func TestPatience(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ovs-ofctl"), []byte("#!/bin/sh\nsleep 0.5\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	s := New(Config{RunDir: dir, Timeout: 150 * time.Millisecond})
	late := 0
	for deadline := time.Now().Add(time.Minute); ; late++ {
		_, err := s.ofctl(t.Context(), "", "br-ex", []string{"dump-flows"})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if late == 0 || s.patience() != 150*time.Millisecond {
		t.Errorf("%d runs were late, and the next one has %s", late, s.patience())
	}
}
