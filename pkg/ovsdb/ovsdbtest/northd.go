package ovsdbtest

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// StartNorthd runs ovn-northd between two servers until the test ends. It fills
// the Southbound database, its RBAC tables included.
func StartNorthd(t testing.TB, northbound, southbound *Server) {
	t.Helper()
	cmd := exec.Command("ovn-northd", "--no-chdir", "-vconsole:off", "-vsyslog:off",
		"--ovnnb-db="+northbound.Endpoint(), "--ovnsb-db="+southbound.Endpoint(),
		"--unixctl="+filepath.Join(southbound.dir, "northd.ctl"))
	if err := cmd.Start(); err != nil {
		t.Fatalf("start ovn-northd: %v", err)
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is ended by the cleanup
		close(exited)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(Timeout):
			t.Error("ovn-northd does not end; killing it")
			_ = cmd.Process.Kill()
			<-exited
		}
	})
}
