package systemd

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Notifier tells the service manager.
type Notifier struct {
	log *slog.Logger
	// alive is asked before the watchdog is fed.
	alive func(context.Context) error
}

// New makes a notifier. alive returns an error when the daemon is stuck; it is
// called from Run, with a deadline of half the watchdog's time.
func New(log *slog.Logger, alive func(context.Context) error) *Notifier {
	return &Notifier{log: log, alive: alive}
}

// Ready tells that the daemon serves. Text is shown by systemctl status.
func (n *Notifier) Ready(text string) { n.send(daemon.SdNotifyReady + "\nSTATUS=" + text) }

// Stopping tells that the daemon ends.
func (n *Notifier) Stopping() { n.send(daemon.SdNotifyStopping) }

func (n *Notifier) send(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn("the service manager cannot be notified", "error", err)
	}
}

// Run feeds the watchdog until ctx ends. Without a watchdog it just waits.
func (n *Notifier) Run(ctx context.Context) error {
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("watchdog of the service manager: %w", err)
	}
	if limit == 0 {
		<-ctx.Done()
		return nil
	}
	// Fed three times in each period: one late round is no reason to restart.
	return loop.Every(ctx, limit/3, nil, func() {
		check, cancel := context.WithTimeout(ctx, limit/2)
		err := n.alive(check)
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			n.log.Error("the watchdog of the service manager is not notified", "error", err)
		default:
			n.send(daemon.SdNotifyWatchdog)
		}
	})
}
