package main

import (
	"log/slog"
	"path/filepath"

	"github.com/ovn-sluice/sluice/pkg/crash"
)

// crashFile is below the state directory.
const crashFile = "crash"

// lastCrash logs how the daemon before this one ended, if by a crash, and has the
// report of this one's kept. Without it nothing is lost but that knowledge.
func lastCrash(stateDir string, log *slog.Logger) {
	path := filepath.Join(stateDir, crashFile)
	last, err := crash.Watch(path)
	if err != nil {
		log.Warn("the report of a crash could not be kept", slog.String("path", path), slog.Any("error", err))
	}
	switch {
	case last.Panic():
		log.Error("the last sluiced ended by a panic", slog.String("panic", string(last)), slog.String("path", path+".last"))
	case last != "":
		log.Error("the last sluiced was ended by a signal or by the Go runtime", slog.String("report", string(last)), slog.String("path", path+".last"))
	}
}
