package main

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/config"
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
