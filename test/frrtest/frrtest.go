// Package frrtest runs daemons of FRR for the time of a test, in a network namespace and a
// directory of their own, so that several routers can run at once and beside the
// machine's.
package frrtest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

const (
	programs = "/usr/lib/frr/"
	// startLimit is many times what a daemon takes to listen on a busy machine.
	startLimit = 30 * time.Second
)

// Daemon is one of a router's daemons.
type Daemon struct {
	Name   string // "zebra", "bgpd"
	Config string // lines of its configuration file
	Args   []string
}

// Router is daemons that share zebra.
type Router struct {
	t   testing.TB
	dir string
	// managed: staticd is configured by way of mgmtd, as from FRR 10 on, which all daemons meet
	// in a place that nothing but a mount can change.
	managed   bool
	processes map[string]*exec.Cmd
}

// Start runs daemons in this order in a named network namespace, "" is the test's own,
// until the test ends. Each one listens before the next is started: zebra comes first.
func Start(t testing.TB, ns string, daemons ...Daemon) *Router {
	t.Helper()
	dir, err := os.MkdirTemp("", "frr") // names of sockets are limited in length
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	// The daemons drop to their own user.
	u, err := user.Lookup("frr")
	if err != nil {
		t.Fatalf("package frr: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	r := &Router{t: t, dir: dir, processes: map[string]*exec.Cmd{}}
	_, err = os.Stat(programs + mgmtd)
	r.managed = err == nil && slices.ContainsFunc(daemons, func(d Daemon) bool { return d.Name == staticd })
	if r.managed {
		if err := os.MkdirAll(runDir, 0o755); err != nil {
			t.Fatal(err)
		}
		r.start(ns, Daemon{Name: mgmtd})
	}
	for _, d := range daemons {
		r.start(ns, d)
	}
	return r
}

const (
	staticd, mgmtd = "staticd", "mgmtd"
	// runDir is where FRR's daemons have their sockets, unless told otherwise.
	runDir = "/var/run/frr"
)

// Static has staticd configured by these commands; lines in its Config would be lost where
// it is managed.
func (r *Router) Static(commands ...string) {
	r.t.Helper()
	daemon := staticd
	if r.managed {
		daemon = mgmtd
	}
	r.VTY(daemon, append([]string{"configure terminal"}, commands...)...)
}

func (r *Router) start(ns string, d Daemon) {
	r.t.Helper()
	argv := []string{programs + d.Name, "-i", r.path(d.Name + ".pid"), "--vty_socket", r.dir, "-P", "0", "--log", "stdout"}
	if d.Name != mgmtd {
		argv = append(argv, "-z", r.path("zserv.api"))
	}
	if !r.managed || d.Name != mgmtd && d.Name != staticd { // these two know no such option then
		file := r.path(d.Name + ".conf")
		if err := os.WriteFile(file, []byte("log stdout informational\n"+d.Config+"\n"), 0o644); err != nil {
			r.t.Fatal(err)
		}
		argv = append(argv, "-f", file)
	}
	if d.Name == "bfdd" {
		argv = append(argv, "--bfdctl", r.path("bfdd.sock"))
	}
	if ns != "" {
		argv = append([]string{"nsenter", "--net=/run/netns/" + ns}, argv...)
	}
	argv = append(argv, d.Args...)
	if r.managed {
		argv = append([]string{"unshare", "--mount", "sh", "-c", "mount --bind \"$0\" " + runDir + ` && exec "$@"`, r.dir}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdout, cmd.Stderr = r.t.Output(), r.t.Output()
	if err := cmd.Start(); err != nil {
		r.t.Fatalf("start FRR's %s (package frr): %v", d.Name, err)
	}
	r.processes[d.Name] = cmd
	r.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(startLimit); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(r.path(d.Name + ".vty")); err == nil {
			return
		}
		if time.Now().After(end) {
			r.t.Fatalf("FRR's %s does not listen", d.Name)
		}
	}
}

func (r *Router) path(name string) string { return filepath.Join(r.dir, name) }

// Dir has the sockets: vtysh's --vty_socket.
func (r *Router) Dir() string { return r.dir }

// Command is a daemon's process.
func (r *Router) Command(name string) *exec.Cmd { return r.processes[name] }

// VTY is what a daemon answers to commands; with a line in the test's log if it does not.
func (r *Router) VTY(daemon string, commands ...string) []byte {
	r.t.Helper()
	args := []string{"--vty_socket", r.dir, "-d", daemon}
	for _, c := range commands {
		args = append(args, "-c", c)
	}
	out, err := exec.Command("vtysh", args...).CombinedOutput()
	if err != nil {
		r.t.Logf("vtysh %q: %v: %s", commands, err, out)
	}
	return out
}
