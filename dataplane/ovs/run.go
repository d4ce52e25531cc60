package ovs

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"
)

// Between two looks whether a bridge's socket is back.
const retryPause = 50 * time.Millisecond

// Run watches the flows of every bridge with a port of Sluice's, until ctx ends:
// it keeps a flow monitor open to each, since the end of that connection is the
// first sign of an ovs-vswitchd that stops, and its next success the first sign
// of the new one. Flows of Sluice's that others delete or change are seen too.
func (s *Switch) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	watched := make(map[string]context.CancelFunc)
	for {
		s.mu.Lock()
		modified := s.modified
		s.mu.Unlock()
		used := s.used()
		for _, bridge := range used {
			if _, ok := watched[bridge]; !ok {
				// Ends with ctx, or when the bridge is no longer used.
				bctx, cancel := context.WithCancel(ctx)
				watched[bridge] = cancel
				wg.Go(func() { s.watch(bctx, bridge) })
			}
		}
		for bridge, cancel := range watched {
			if !slices.Contains(used, bridge) {
				cancel()
				delete(watched, bridge)
			}
		}
		select {
		case <-ctx.Done():
			for _, cancel := range watched {
				cancel()
			}
			return ctx.Err()
		case <-modified:
		}
	}
}

// watch keeps one monitor running.
func (s *Switch) watch(ctx context.Context, bridge string) {
	for ctx.Err() == nil {
		if s.reachable(bridge) {
			if err := s.monitor(ctx, bridge); err != nil && ctx.Err() == nil {
				s.log.Debug("flow monitor ended", "bridge", bridge, "error", err)
			}
			s.changed()
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

func (s *Switch) reachable(bridge string) bool {
	c, err := net.DialTimeout("unix", s.socket(bridge), time.Second)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// monitor runs until the connection breaks. Its first line tells that the bridge
// answers: what was there before is not known, so that counts as a change.
func (s *Switch) monitor(ctx context.Context, bridge string) error {
	cmd := exec.CommandContext(ctx, "ovs-ofctl", "-O", openFlow, "monitor", "unix:"+s.socket(bridge), "watch:")
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("flow monitor of bridge %s: %w", bridge, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("flow monitor of bridge %s: %w", bridge, err)
	}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for first := true; lines.Scan(); first = false {
		if first || lost(lines.Text()) {
			s.changed()
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("flow monitor of bridge %s: %w", bridge, err)
	}
	return lines.Err()
}

// lost tells whether a line of the monitor says that one of Sluice's flows is no
// longer what it was.
func lost(line string) bool {
	return (strings.Contains(line, "event=DELETED") || strings.Contains(line, "event=MODIFIED")) &&
		strings.Contains(line, fmt.Sprintf("cookie=%#x", Cookie>>16))
}
