package namespace_test

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

	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = 60 * time.Second

// node is a namespace that is a node, with names of its own for those that are made.
type node struct {
	t     *testing.T
	ns    string
	names namespace.Names
	dir   string
	sw    *ovs.Switch
}

func newNode(t *testing.T) *node {
	t.Helper()
	ns := fmt.Sprintf("slmd%d", os.Getpid())
	n := &node{t: t, ns: ns, names: namespace.Names{Proxy: ns + "-proxy", Prefix: ns + "-net-"}}
	n.host("ip netns add " + ns)
	t.Cleanup(func() {
		for _, path := range append(n.spaces(), filepath.Join(netns.RunDir, ns)) {
			_ = netns.Remove(path)
		}
	})
	n.run("ip link set lo up")
	return n
}

// spaces are the files of namespaces with the node's names.
func (n *node) spaces() []string {
	all, _ := filepath.Glob(filepath.Join(netns.RunDir, n.ns+"-*"))
	return all
}

func (n *node) namespace() netns.Namespace { return netns.Named(n.ns) }

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
	return n.in("/run/netns/"+n.ns, script)
}

func (n *node) in(path, script string) string {
	n.t.Helper()
	out, err := n.try(path, script)
	if err != nil {
		n.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return out
}

// try returns what a script writes, and of one that fails its errors besides: ip(8) warns
// of the other ends of pairs in namespaces that are going, whoever's they are.
func (n *node) try(path, script string) (string, error) {
	script = strings.ReplaceAll(script, "ovs-vsctl ", "ovs-vsctl --timeout=20 --db=unix:"+filepath.Join(n.dir, "db.sock")+" ")
	var errs strings.Builder
	cmd := exec.Command("nsenter", "--net="+path, "sh", "-ec", script)
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return string(out) + errs.String(), err
	}
	return string(out), nil
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

// withSwitch gives the node an Open vSwitch with the bridge br-int.
func (n *node) withSwitch() {
	n.t.Helper()
	n.dir = n.t.TempDir()
	path := func(name string) string { return filepath.Join(n.dir, name) }
	n.host("ovsdb-tool create " + path("conf.db") + " /usr/share/openvswitch/vswitch.ovsschema")
	n.start("ovsdb-server", path("conf.db"), "--remote=punix:"+path("db.sock"), "--unixctl="+path("db.ctl"), "--no-chdir", "-vconsole:off")
	n.until("the database", func() bool { _, err := os.Stat(path("db.sock")); return err == nil })
	n.run("ovs-vsctl --no-wait init")
	n.start("ovs-vswitchd", "unix:"+path("db.sock"), "--unixctl="+path("vs.ctl"), "--no-chdir", "-vconsole:off", "--log-file="+path("vs.log"))
	n.run("ovs-vsctl add-br br-int -- set bridge br-int datapath_type=netdev -- add-br br-ex -- set bridge br-ex datapath_type=netdev")
	sw, session, err := ovs.Open(ovs.Config{RunDir: n.dir, Timeout: deadline}, ovsdb.Config{Endpoints: "unix:" + path("db.sock")})
	if err != nil {
		n.t.Fatal(err)
	}
	n.sw = sw
	ctx, cancel := context.WithCancel(context.Background())
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return session.Run(ctx) })
	n.t.Cleanup(func() { cancel(); _ = g.Wait() })
	n.until("the database is read", func() bool { b, err := sw.Bridges(); return err == nil && len(b) == 2 })
}

func (n *node) start(args ...string) {
	n.t.Helper()
	cmd := n.command(args...)
	if err := cmd.Start(); err != nil {
		n.t.Fatalf("%v: %v", args, err)
	}
	n.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
}
