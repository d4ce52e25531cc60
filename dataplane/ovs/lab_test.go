package ovs_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(watchOnly); dir != "" {
		watchUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

const deadline = 30 * time.Second

const patchPort = "patch-provnet-4711-0815-to-br-int"

// node is an Open vSwitch of its own: database, daemon, run directory, namespace.
type node struct {
	t      *testing.T
	ns     string
	dir    string
	daemon *exec.Cmd
	sw     *ovs.Switch
}

func newNode(t *testing.T) *node {
	t.Helper()
	n := &node{t: t, ns: fmt.Sprintf("slovs%d", os.Getpid()), dir: t.TempDir()}
	n.host("ip netns add " + n.ns)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", n.ns).Run() })
	n.host("ovsdb-tool create " + n.path("conf.db") + " /usr/share/openvswitch/vswitch.ovsschema")
	db := n.start("ovsdb-server", n.path("conf.db"), "--remote=punix:"+n.path("db.sock"), "--unixctl="+n.path("db.ctl"), "--no-chdir", "-vconsole:off")
	t.Cleanup(func() { n.stop(db) })
	n.waitFile("db.sock")
	n.run("ovs-vsctl --no-wait init")
	n.startDaemon()
	t.Cleanup(func() { n.stop(n.daemon) })
	n.run(`ip link set lo up
		ip link add phys type veth peer name wire; ip link set phys up; ip link set wire up
		ip link add sluice0 type veth peer name sluice0-ovs; ip link set sluice0 up; ip link set sluice0-ovs up
		ip link add tap type veth peer name tap-ovs; ip link set tap up; ip link set tap-ovs up
		ovs-vsctl add-br br-ex -- set bridge br-ex datapath_type=netdev -- add-port br-ex phys
		ovs-vsctl add-br br-int -- set bridge br-int datapath_type=netdev -- add-port br-int tap-ovs
		ovs-vsctl add-port br-ex ` + patchPort + ` -- set interface ` + patchPort + ` type=patch options:peer=far -- add-port br-int far -- set interface far type=patch options:peer=` + patchPort)
	n.connect()
	return n
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }

func (n *node) host(command string) {
	n.t.Helper()
	if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v: %s", command, err, out)
	}
}

func (n *node) command(args ...string) *exec.Cmd {
	cmd := exec.Command("nsenter", append([]string{"--net=/run/netns/" + n.ns}, args...)...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+n.dir, "OVS_LOGDIR="+n.dir)
	return cmd
}

// run runs a script in the node; ovs-vsctl talks to its database.
func (n *node) run(script string) string {
	n.t.Helper()
	script = strings.ReplaceAll(script, "ovs-vsctl ", "ovs-vsctl --timeout=20 --db=unix:"+n.path("db.sock")+" ")
	out, err := n.command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		n.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

func (n *node) start(args ...string) *exec.Cmd {
	n.t.Helper()
	cmd := n.command(args...)
	if err := cmd.Start(); err != nil {
		n.t.Fatalf("%v: %v", args, err)
	}
	return cmd
}

func (n *node) stop(cmd *exec.Cmd) {
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}

func (n *node) startDaemon() {
	n.daemon = n.start("ovs-vswitchd", "unix:"+n.path("db.sock"), "--unixctl="+n.path("vs.ctl"), "--no-chdir", "-vconsole:off", "--log-file="+n.path("vs.log"))
}

func (n *node) waitFile(name string) {
	n.t.Helper()
	n.until("file "+name, func() bool { _, err := os.Stat(n.path(name)); return err == nil })
}

func (n *node) until(what string, ok func() bool) {
	n.t.Helper()
	for end := time.Now().Add(deadline); ; time.Sleep(20 * time.Millisecond) {
		if ok() {
			return
		}
		if time.Now().After(end) {
			n.t.Fatalf("not in time: %s", what)
		}
	}
}

// connect starts the session and the switch.
func (n *node) connect() {
	n.t.Helper()
	sw, session, err := ovs.Open(ovs.Config{RunDir: n.dir}, ovsdb.Config{Endpoints: "unix:" + n.path("db.sock")})
	if err != nil {
		n.t.Fatal(err)
	}
	n.sw = sw
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return session.Run(ctx) })
	g.Go(func() error { return n.sw.Run(ctx) })
	n.t.Cleanup(func() { cancel(); _ = g.Wait() })
	n.until("the database is read", func() bool { b, err := n.sw.Bridges(); return err == nil && len(b) == 2 })
}

func (n *node) dump() string {
	n.t.Helper()
	return n.run("ovs-ofctl -O OpenFlow14 --no-stats dump-flows unix:" + n.path("br-ex.mgmt"))
}

// quiet takes what Changes tells until it has been silent for a while.
func (n *node) quiet() {
	for {
		select {
		case <-n.sw.Changes():
		case <-time.After(300 * time.Millisecond):
			return
		}
	}
}

func (n *node) noticed(what string) {
	n.t.Helper()
	select {
	case <-n.sw.Changes():
	case <-time.After(deadline):
		n.t.Fatalf("not noticed: %s", what)
	}
}
