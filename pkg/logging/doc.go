// Package logging makes the daemon's logger. It sets no global: the logger is
// handed to whoever logs.
package logging

import (
	"io"
	"log/slog"

	"github.com/ovn-sluice/sluice/pkg/config"
)

// New makes a logger that writes to w. The level can be changed while running
// through the second result.
func New(w io.Writer, c config.Log) (*slog.Logger, *slog.LevelVar) {
	var level slog.LevelVar
	level.Set(c.Level.Level())
	opts := &slog.HandlerOptions{Level: &level}
	if c.Format == config.LogJSON {
		return slog.New(slog.NewJSONHandler(w, opts)), &level
	}
	return slog.New(slog.NewTextHandler(w, opts)), &level
}
