// Package logging makes a program's logger. It sets no global: the logger is
// handed to whoever logs.
package logging

import (
	"io"
	"log/slog"

	"github.com/ovn-sluice/sluice/pkg/output"
)

// New makes a logger that writes to w. What it logs is somebody else's text in part, and no
// command to the terminal that shows it: package output.
func New(w io.Writer, c Config) *slog.Logger {
	w = output.Writer(w)
	opts := &slog.HandlerOptions{Level: c.Level.Level()}
	if c.Format == FormatJSON {
		return slog.New(slog.NewJSONHandler(w, opts))
	}
	return slog.New(slog.NewTextHandler(w, opts))
}
