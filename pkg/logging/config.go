package logging

import (
	"log/slog"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// Config is the daemon's log on standard error.
type Config struct {
	// Level is the least severe level that is written: debug, info, warn or error.
	Level Level `yaml:"level"`
	// Format is text or json.
	Format Format `yaml:"format"`
}

// Level names a level of log/slog.
type Level string

// The levels.
const (
	LevelDebug Level = "debug"
	LevelInfo  Level = "info"
	LevelWarn  Level = "warn"
	LevelError Level = "error"
)

// Level is the level as log/slog knows it.
func (l Level) Level() slog.Level {
	var out slog.Level
	if out.UnmarshalText([]byte(l)) != nil {
		return slog.LevelInfo
	}
	return out
}

// UnmarshalText reads a level.
func (l *Level) UnmarshalText(b []byte) error {
	return configfile.OneOf(l, b, LevelDebug, LevelInfo, LevelWarn, LevelError)
}

// Format is the form of the log.
type Format string

// The forms.
const (
	FormatText Format = "text"
	FormatJSON Format = "json"
)

// UnmarshalText reads a form.
func (f *Format) UnmarshalText(b []byte) error {
	return configfile.OneOf(f, b, FormatText, FormatJSON)
}
