package metadataproxy

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A restart in place is refused by a build or a configuration that is of no use, which the log has; not
// by the end of the process, which ends the look at them.
func TestRestartInPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		ends, handOver bool
		errs           []error // of each look
		errors         int     // in the log
	}{
		"a usable build":             {false, true, []error{nil}, 0},
		"the second build is usable": {false, true, []error{errors.New("unknown key"), nil}, 1},
		"the process ends meanwhile": {true, false, []error{errors.New("signal: killed")}, 0},
	} {
		cfg, dir := config.Default(), t.TempDir()
		cfg.Metadata.Backend, cfg.Metadata.Socket, cfg.Metadata.Listen = config.BackendNone, filepath.Join(dir, "socket"), ""
		var log strings.Builder
		p, err := newProcess(cfg, options{version: "1.0"}, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		again := make(chan os.Signal, 1)
		again <- syscall.SIGHUP
		_, handOver := p.run(ctx, nil, again, func(context.Context) error {
			err := tt.errs[0]
			if tt.errs = tt.errs[1:]; len(tt.errs) > 0 {
				again <- syscall.SIGHUP
			}
			if tt.ends {
				cancel()
			}
			return err
		})
		cancel()
		if handOver != tt.handOver || strings.Count(log.String(), "\n") != tt.errors {
			t.Errorf("%s: handed over %t; log\n%s", name, handOver, &log)
		}
	}
}
