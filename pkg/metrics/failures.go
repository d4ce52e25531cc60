package metrics

import "log/slog"

// LogFailures tells when metrics of a collector cannot be read, and when they can be again.
func LogFailures(log *slog.Logger) func(collector string, err error) {
	return func(collector string, err error) {
		if err == nil {
			log.Info("metrics can be read again", "collector", collector)
			return
		}
		log.Warn("metrics cannot be read", "collector", collector, "error", err)
	}
}
