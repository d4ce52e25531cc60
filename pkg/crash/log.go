package crash

import (
	"log/slog"
	"path/filepath"
)

// file is below the state directory.
const file = "crash"

// Log tells how the process before this one ended, if by a crash, and has the
// report of this one's kept. Without it nothing is lost but that knowledge.
func Log(stateDir string, log *slog.Logger) {
	path := filepath.Join(stateDir, file)
	last, err := Watch(path)
	if err != nil {
		log.Warn("the report of a crash cannot be saved", slog.String("path", path), slog.Any("error", err))
	}
	switch {
	case last.Panic():
		log.Error("the last sluiced ended by a panic", slog.String("panic", string(last)), slog.String("path", path+".last"))
	case last != "":
		log.Error("the last sluiced was ended by a signal or by the Go runtime", slog.String("report", string(last)), slog.String("path", path+".last"))
	}
}
