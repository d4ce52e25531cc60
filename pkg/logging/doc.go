// Package logging makes the daemon's logger. It sets no global: the logger is
// handed to whoever logs.
package logging

import (
	"io"
	"log/slog"

	"github.com/ovn-sluice/sluice/pkg/config"
)

// New makes a logger that writes to w.
func New(w io.Writer, c config.Log) *slog.Logger {
	opts := &slog.HandlerOptions{Level: c.Level.Level()}
	if c.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
