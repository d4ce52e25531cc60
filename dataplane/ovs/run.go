package ovs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

const (
	// retryPause is between two looks whether a bridge's socket is back.
	retryPause = 50 * time.Millisecond
	// refusedPause follows a monitor that was refused.
	refusedPause = time.Second
)

// settling is when flows are looked at again after a monitor was started, whether
// or not it was answered: its bridge may be one that has just come back.
var settling = []time.Duration{300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}

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
				s.moved.Send()
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

// watch keeps one monitor running. It keeps its thread too: a monitor is told of
// its parent's end when the thread that started it ends, and threads of goroutines
// that were in another network namespace do end.
func (s *Switch) watch(ctx context.Context, bridge string) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	warned := false
	for ctx.Err() == nil {
		pause := retryPause
		if s.reachable(bridge) {
			answered, err := s.monitor(ctx, bridge)
			if answered {
				warned = false
				s.changes.Send()
			} else if ctx.Err() == nil {
				// The bridge is there and refuses: no hurry, and said once.
				pause = refusedPause
				if !warned {
					s.log.Warn("flow monitor refused", "bridge", bridge, "error", err)
				}
				warned = true
			}
		}
		loop.Sleep(ctx, pause)
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
func (s *Switch) monitor(ctx context.Context, bridge string) (answered bool, err error) {
	cmd := s.command(ctx, "-O", openFlow, "monitor", "unix:"+s.socket(bridge), "watch:")
	// A sluiced that is killed leaves no monitor behind: it would stay connected for
	// good, as it only writes when a flow changes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// Ovs-ofctl prints the flows that there are to its standard output, and what
	// changes to its standard error.
	out, err := cmd.StderrPipe()
	if err != nil {
		return false, fmt.Errorf("flow monitor of bridge %s: %w", bridge, err)
	}
	cmd.Stdout = cmd.Stderr
	s.forgetLeaving(bridge)
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("flow monitor of bridge %s: %w", bridge, err)
	}
	for _, d := range settling {
		defer time.AfterFunc(d, func() { s.changes.Send(); s.moved.Send() }).Stop()
	}
	// An ovs-vswitchd that has just started may leave a request without an answer
	// until its next probe, a minute later: ask again.
	deaf := time.AfterFunc(s.config.Timeout, func() { _ = cmd.Cancel() })
	defer deaf.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	last := ""
	for lines.Scan() {
		last = lines.Text()
		now := answered || strings.HasPrefix(last, "OFP")
		if now {
			deaf.Stop()
		}
		if now != answered || s.lost(bridge, last) {
			s.changes.Send()
		}
		if now != answered || strings.HasPrefix(strings.TrimSpace(last), "event=") {
			s.moved.Send()
		}
		answered = now
	}
	if lines.Err() != nil {
		_ = cmd.Cancel()
	}
	err = errors.Join(lines.Err(), cmd.Wait())
	return answered, fmt.Errorf("flow monitor of bridge %s: %w: %s", bridge, err, last)
}

// lost tells whether a line of the monitor says that one of Sluice's flows is no
// longer what it was, by another hand than this process'. A foreign flow that takes the place of one is told as added
// and nothing as deleted; a line shows no priority, so each of the shape counts.
func (s *Switch) lost(bridge, line string) bool {
	event, rest, ok := strings.Cut(strings.TrimSpace(line), " ")
	if !ok || !strings.HasPrefix(event, "event=") || event == "event=INITIAL" {
		return false
	}
	cookie := cookieOf(rest)
	if i := strings.Index(rest, "cookie="); i > 0 {
		rest = rest[i:]
	}
	if text, _, cut := cutActions(rest); cut {
		rest = text
	}
	m, err := parseMatch(rest)
	if cookie&CookieMask == Cookie {
		return event == "event=MODIFIED" || event == "event=DELETED" && (err != nil || !s.leaves(bridge, m))
	}
	return err == nil && m.inPort != 0
}
