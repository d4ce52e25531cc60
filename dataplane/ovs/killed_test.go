package ovs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

// watchOnly names the run directory of a switch that this program is to watch,
// instead of running tests.
const watchOnly = "SLUICE_TEST_WATCH"

func watchUntilKilled(dir string) {
	sw, session, err := ovs.Open(ovs.Config{RunDir: dir}, ovsdb.Config{Endpoints: "unix:" + filepath.Join(dir, "db.sock")})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	g, ctx := errgroup.WithContext(context.Background())
	g.Go(func() error { return session.Run(ctx) })
	g.Go(func() error { return sw.Run(ctx) })
	fmt.Fprintln(os.Stderr, g.Wait())
	os.Exit(1)
}

// A process that is killed takes its flow monitor with it.
func TestMonitorEndsWithAKilledParent(t *testing.T) {
	n := newNode(t)
	n.ensure()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := n.command(program)
	parent.Env = append(parent.Env, watchOnly+"="+n.dir)
	parent.Stderr = os.Stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.stop(parent) })
	monitor := ""
	n.until("the monitor runs", func() bool {
		out, err := exec.Command("pgrep", "-P", fmt.Sprint(parent.Process.Pid), "-f", "ovs-ofctl.* monitor").Output()
		monitor = strings.TrimSpace(string(out))
		return err == nil && monitor != ""
	})
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	n.until("the monitor has ended", func() bool {
		// A process that ended and was not waited for has no command line.
		line, err := os.ReadFile(filepath.Join("/proc", monitor, "cmdline"))
		return err != nil || len(line) == 0
	})
}

// A monitor of flows that nothing changes is kept: an answer of the bridge is one.
func TestCalmMonitor(t *testing.T) {
	n := newNode(t)
	n.ensure()
	const timeout = time.Second
	sw, session, err := ovs.Open(ovs.Config{RunDir: n.dir, Timeout: timeout}, ovsdb.Config{Endpoints: "unix:" + filepath.Join(n.dir, "db.sock")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return session.Run(ctx) })
	g.Go(func() error { return sw.Run(ctx) })
	t.Cleanup(func() { cancel(); _ = g.Wait() })
	monitors := func() string {
		out, _ := exec.Command("pgrep", "-P", fmt.Sprint(os.Getpid()), "-f", "ovs-ofctl.* monitor .*"+n.dir).Output()
		return strings.TrimSpace(string(out))
	}
	// That of the node's own switch is the other one.
	n.until("both monitors run", func() bool { return len(strings.Fields(monitors())) == 2 })
	first := monitors()
	time.Sleep(4 * timeout)
	if now := monitors(); now != first {
		t.Errorf("the monitor was started again: %s, then %s", first, now)
	}
}
