package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// What another sluiced may still write is not read before its lock is taken.
func TestLockComesFirst(t *testing.T) {
	cfg := config.Default()
	cfg.StateDir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cfg.StateDir, "vrf-indices.json"), []byte("half a f"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := admin.AcquireLock(cfg.StateDir, "sluiced")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Release() }()
	if err := runDaemon(t.Context(), cfg, slog.New(slog.DiscardHandler)); !errors.Is(err, admin.ErrLocked) {
		t.Errorf("error %v", err)
	}
}

// A node that forwards nothing is an answer to "explain", not an error.
func TestExplainWithoutANode(t *testing.T) {
	d := followingDaemon(t, func(c *config.Config) { c.Admin.Socket = filepath.Join(t.TempDir(), "s") })
	d.latest.reason = "roles: none in the configuration"
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.runAdmin(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	client := admin.NewClient(nodeapi.Program, d.cfg.Admin.Socket)
	var e status.Explanation
	eventually(t, "an answer", func() (err error) {
		e, err = admin.Call(ctx, client, nodeapi.Explain, status.Query{VRF: 1001})
		return err
	})
	if last := e.Steps[len(e.Steps)-1]; e.Works || !strings.Contains(last.Detail, "roles: none") {
		t.Errorf("explanation %+v", e)
	}
}
