package ovn

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a real Northbound, Southbound and vswitch database with a real
// ovn-northd between the first two; no ovn-controller: tests bind ports.
type lab struct {
	t   *testing.T
	dir string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	for db, schema := range map[string]string{
		"nb": "/usr/share/ovn/ovn-nb.ovsschema", "sb": "/usr/share/ovn/ovn-sb.ovsschema",
		"vs": "/usr/share/openvswitch/vswitch.ovsschema",
	} {
		l.run("ovsdb-tool", "create", l.path(db+".db"), schema)
		l.serve(db)
	}
	l.start("ovn-northd", "--ovnnb-db="+l.remote("nb"), "--ovnsb-db="+l.remote("sb"),
		"--unixctl="+l.path("northd.ctl"), "--log-file="+l.path("northd.log"), "-vconsole:off")
	l.run("ovs-vsctl", "--no-wait", "--db="+l.remote("vs"), "init")
	l.vs("set", "Open_vSwitch", ".", "external_ids:system-id=a1", "external_ids:ovn-remote="+l.remote("sb"),
		"external_ids:ovn-bridge-mappings=physnet1:br-ex")
	l.vs("add-br", "br-ex")
	l.nb("init")
	l.sb("chassis-add", "a1", "geneve", "192.0.2.1", "--", "chassis-add", "a2", "geneve", "192.0.2.2")
	l.sb("create", "Chassis_Private", "name=a1", "external_ids:foreign=kept", "external_ids:sluice-old=1")
	return l
}

func (l *lab) path(name string) string   { return filepath.Join(l.dir, name) }
func (l *lab) remote(name string) string { return "unix:" + l.path(name+".sock") }

// serve starts a database server and gives its stop.
func (l *lab) serve(db string) func() {
	args := []string{l.path(db + ".db"), "--remote=p" + l.remote(db), "--unixctl=" + l.path(db+".ctl"),
		"--log-file=" + l.path(db+".log"), "--pidfile=" + l.path(db+".pid"), "-vconsole:off"}
	if db == "sb" {
		args = append(args, "--remote=db:OVN_Southbound,SB_Global,connections")
	}
	stop := l.start("ovsdb-server", args...)
	l.waitFor("the socket of "+db, func() bool {
		c, err := net.Dial("unix", l.path(db+".sock"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return stop
}

func (l *lab) start(name string, args ...string) func() {
	l.t.Helper()
	cmd := exec.Command(name, args...)
	if err := cmd.Start(); err != nil {
		l.t.Fatalf("start %s: %v", name, err)
	}
	stop := sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	l.t.Cleanup(stop)
	return stop
}

func (l *lab) run(args ...string) string {
	l.t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		l.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (l *lab) nb(args ...string) string {
	return l.run(append([]string{"ovn-nbctl", "--timeout=30", "--wait=sb", "--db=" + l.remote("nb")}, args...)...)
}
func (l *lab) sb(args ...string) string {
	return l.run(append([]string{"ovn-sbctl", "--timeout=30", "--db=" + l.remote("sb")}, args...)...)
}
func (l *lab) vs(args ...string) string {
	return l.run(append([]string{"ovs-vsctl", "--no-wait", "--timeout=30", "--db=" + l.remote("vs")}, args...)...)
}

// provider adds a provider switch with its localnet port.
func (l *lab) provider(name, network string) {
	l.nb("ls-add", name, "--", "lsp-add", name, "ln-"+name, "--", "lsp-set-type", "ln-"+name, "localnet",
		"--", "lsp-set-addresses", "ln-"+name, "unknown", "--", "lsp-set-options", "ln-"+name, "network_name="+network)
}

// tenant adds router n with a gateway port on a provider switch, scheduled on
// chassis, one network and a VM bound to a2.
func (l *lab) tenant(n int, provider string, chassis ...string) {
	r := fmt.Sprintf("r%d", n)
	args := []string{
		"lr-add", r,
		"--", "lrp-add", r, "gw-" + r, fmt.Sprintf("02:00:00:00:00:%02x", n), fmt.Sprintf("172.24.4.%d/24", n), fmt.Sprintf("2001:db8:ff::%x/64", n),
		"--", "lsp-add", provider, "sgw-" + r, "--", "lsp-set-type", "sgw-" + r, "router",
		"--", "lsp-set-addresses", "sgw-" + r, "router", "--", "lsp-set-options", "sgw-" + r, "router-port=gw-" + r,
		"--", "ls-add", "net-" + r,
		"--", "lrp-add", r, "in-" + r, fmt.Sprintf("02:00:00:01:00:%02x", n), "10.10.0.1/24", "2001:db8:10::1/64",
		"--", "lsp-add", "net-" + r, "sin-" + r, "--", "lsp-set-type", "sin-" + r, "router",
		"--", "lsp-set-addresses", "sin-" + r, "router", "--", "lsp-set-options", "sin-" + r, "router-port=in-" + r,
		"--", "lsp-add", "net-" + r, "vm-" + r, "--", "lsp-set-addresses", "vm-" + r, "02:00:00:02:00:05 10.10.0.5 2001:db8:10::5",
	}
	for k, c := range chassis {
		args = append(args, "--", "lrp-set-gateway-chassis", "gw-"+r, c, fmt.Sprint(10-k))
	}
	l.nb(args...)
	if len(chassis) > 0 {
		l.sb("lsp-bind", "cr-gw-"+r, chassis[0])
	}
	l.sb("lsp-bind", "vm-"+r, "a2")
}

// watch runs a follower and keeps what its last event said.
type watch struct {
	*Follower
	t *testing.T
	// end ends the follower, once.
	end  func()
	mu   sync.Mutex
	last InSync
	seen int
	// dirty collects the names of the routers that events named.
	dirty map[string]bool
	// all counts the events that touch every router.
	all int
}

func (l *lab) follow(cfg Config) *watch {
	l.t.Helper()
	w := &watch{t: l.t, dirty: map[string]bool{}}
	also := cfg.Handle
	cfg.VSwitch, cfg.Handle = l.remote("vs"), func(e Event) {
		w.handle(e)
		if also != nil {
			also(e)
		}
	}
	f, err := NewFollower(cfg)
	if err != nil {
		l.t.Fatal(err)
	}
	w.Follower = f
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.t.Errorf("Run: %v", err)
		}
	})
	l.t.Cleanup(w.end)
	return w
}

func (w *watch) handle(e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = e.InSync
	w.seen++
	if e.Dirty.All {
		w.all++
	}
	for id := range e.Dirty.Routers {
		d, _ := e.Rows.Datapath(id)
		w.dirty[d.Name()] = true
	}
}

// ports lists the names of the rows held, without those that only the chassis
// clause brings.
func (w *watch) ports() (out []string) {
	w.View(func(r *Rows) {
		for _, p := range r.ports {
			out = append(out, p.LogicalPort)
		}
	})
	slices.Sort(out)
	return out
}

// until waits for a state in which the follower is in sync.
func (w *watch) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		w.mu.Lock()
		inSync := w.last.All()
		w.mu.Unlock()
		if inSync && ok() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	s := w.Status()
	w.t.Fatalf("waited in vain for %s; in sync %+v, ports %v, err %v %v, sessions %+v", what, s.InSync, w.ports(), s.SBErr, s.NBErr, s.Sessions)
}

func (w *watch) untilPorts(what string, names ...string) {
	w.t.Helper()
	slices.Sort(names)
	w.until(what, func() bool { return slices.Equal(w.ports(), names) })
}

func (l *lab) waitFor(what string, ok func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
