package metadataproxy

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// It starts itself anew under load, by either signal: nothing is refused, nothing breaks
// off, and it is the same process.
func TestAgainUnderLoad(t *testing.T) {
	w := newWorld(t)
	p := w.start(nil)
	l := w.load(12)
	for i := range 8 {
		time.Sleep(300 * time.Millisecond)
		p.again([]syscall.Signal{syscall.SIGHUP, syscall.SIGUSR2}[i%2])
	}
	time.Sleep(300 * time.Millisecond)
	asked, failed, first := l.end()
	if failed > 0 || asked < 100 {
		t.Errorf("%d requests, %d failed: %v", asked, failed, first)
	}
	t.Logf("%d requests, 8 restarts, %d failed", asked, failed)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", p.Process.Pid)); err != nil {
		t.Error(err)
	}
	// Two at once are one after the other, or one.
	for range 2 {
		_ = p.Process.Signal(syscall.SIGHUP)
	}
	time.Sleep(time.Second)
	p.ready()
	if err := p.end(syscall.SIGTERM); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

const otherCommit = "another build"

// buildOther builds sluiced of another commit, as it says. What it is made of is that of the one under test.
func buildOther(to string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-X 'github.com/ovn-sluice/sluice.commit="+otherCommit+"'", "-o", to, "../../cmd/sluiced")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build sluiced: %w: %s", err, out)
	}
	return nil
}

// What is installed in its place is what it becomes, with the configuration as it is then.
// What cannot be started, or does not take the configuration, it does not become.
func TestOtherBuildAndConfiguration(t *testing.T) {
	w := newWorld(t)
	p := w.start(nil)
	replace := func(make func(path string) error) {
		t.Helper()
		next := w.bin + ".next"
		if err := make(next); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(next, w.bin); err != nil {
			t.Fatal(err)
		}
	}
	replace(buildOther)
	if s, err := p.status(); err != nil || strings.Contains(s.Version, otherCommit) {
		t.Errorf("before: %+v %v", s, err)
	}
	p.again(syscall.SIGHUP)
	if s, err := p.status(); err != nil || !strings.Contains(s.Version, otherCommit) {
		t.Errorf("after: %+v %v", s, err)
	}
	stays := func(what, says string) {
		t.Helper()
		before, err := p.status()
		if err != nil {
			t.Fatal(err)
		}
		logged := strings.Count(w.log.String(), says)
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually(t, what+" is logged", func() bool { return strings.Count(w.log.String(), says) > logged })
		if now, err := p.status(); err != nil || !now.Started.Equal(before.Started) {
			t.Errorf("%s: it has started itself anew: %v", what, err)
		}
		if got := w.ask(w.guest(atRed), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 inst-red") {
			t.Errorf("%s: %s", what, got)
		}
	}
	good, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.configure("backend: nova")
	stays("a broken configuration", "metadata.nova.hosts: missing")
	if err := os.WriteFile(w.config, good, 0o600); err != nil {
		t.Fatal(err)
	}
	replace(func(path string) error { return os.WriteFile(path, []byte("no program"), 0o755) })
	stays("a broken program", "does not restart in place")
	// One that says that all is well and then cannot be executed.
	script := "#!/bin/sh\n[ \"$1\" = --check ] && { echo '#!/nonexistent' > " + w.bin + ".x; chmod 755 " + w.bin + ".x; mv " + w.bin + ".x " + w.bin + "; exit 0; }\nexit 1\n"
	replace(func(path string) error { return os.WriteFile(path, []byte(script), 0o755) })
	l := w.load(4)
	logged := strings.Count(w.log.String(), "cannot restart in place")
	if err := p.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the failure is logged", func() bool { return strings.Count(w.log.String(), "cannot restart in place") > logged })
	time.Sleep(300 * time.Millisecond)
	if asked, failed, first := l.end(); failed > 0 || asked == 0 {
		t.Errorf("%d requests, %d failed: %v", asked, failed, first)
	}
	p.ready()
	if err := os.Remove(w.bin); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(program, w.bin); err != nil {
		t.Fatal(err)
	}
	// The backend becomes none, and back: it is idle, and nobody listens.
	w.configure("backend: none")
	p.again(syscall.SIGHUP)
	if s, err := p.status(); err != nil || len(s.Listeners) > 0 || s.Backend != "none" {
		t.Errorf("%+v %v", s, err)
	}
	if c, err := w.dial("sluice-metadata", atRed); err == nil {
		c.Close()
		t.Error("an idle proxy listens")
	}
	if err := os.WriteFile(w.config, good, 0o600); err != nil {
		t.Fatal(err)
	}
	p.again(syscall.SIGHUP)
	if got := w.ask(w.guest(atRed), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 inst-red") {
		t.Error(got)
	}
}

// Of two, one runs.
func TestSecondProcess(t *testing.T) {
	w := newWorld(t)
	w.start(nil)
	second := w.launch(nil)
	select {
	case err := <-second.done:
		if err == nil || !strings.Contains(w.log.String(), "another sluiced metadata is running") {
			t.Errorf("%v", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("two are running")
	}
	if got := w.ask(w.guest(atRed), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 inst-red") {
		t.Error(got)
	}
}

// A signal to end that comes while it starts itself anew ends it, whenever that is.
func TestEndWhileStartingAnew(t *testing.T) {
	w := newWorld(t)
	for i := range 40 {
		p := w.start(nil)
		if err := p.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 2 * time.Millisecond)
		var exit *exec.ExitError
		if err := p.end(syscall.SIGTERM); err != nil && !(errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGTERM) {
			t.Errorf("after %d ms: %v", 2*i, err)
		}
	}
}
