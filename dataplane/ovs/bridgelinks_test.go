package ovs_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var _ kernel.Ports = (*ovs.Switch)(nil)

func (n *node) links() *kernel.BridgeLinks { return n.linksFor(false) }

func (n *node) linksFor(routed bool) *kernel.BridgeLinks {
	return kernel.NewBridgeLinks(kernel.BridgeLinksConfig{
		Namespace: netns.Named(n.ns), Ports: n.sw, MTU: 1450, Routed: routed,
		Attach: func(context.Context, string, int) error { return nil },
	})
}

func (n *node) pair(d *kernel.BridgeLinks, bridge intent.BridgeKey) {
	n.t.Helper()
	row := reconcile.Row[intent.BridgeKey, intent.Bridge]{Key: bridge, Value: intent.Bridge{Name: bridge}}
	if errs := d.Apply(context.Background(), []reconcile.Row[intent.BridgeKey, intent.Bridge]{row}); errs != nil {
		n.t.Fatalf("apply: %v", errors.Join(errs...))
	}
}

func (n *node) intact(d *kernel.BridgeLinks, bridge intent.BridgeKey) bool {
	n.t.Helper()
	got, err := d.List(context.Background())
	if err != nil {
		n.t.Fatal(err)
	}
	return got[bridge] == intent.Bridge{Name: bridge}
}

func TestBridgeLinks(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	d := n.links()
	if errs := d.Apply(ctx, []reconcile.Row[intent.BridgeKey, intent.Bridge]{{Key: "br-none"}}); len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
		t.Fatalf("no such bridge: %v", errs)
	}
	address := n.run("ovs-vsctl get interface br-ex mac_in_use")
	// The lab's own sluice0 is foreign: the driver takes the next number.
	n.pair(d, "br-ex")
	if !n.intact(d, "br-ex") {
		t.Fatalf("not as applied: %s", n.run("ip -d link; ovs-vsctl show"))
	}
	if got := n.run("ovs-vsctl get interface br-ex mac_in_use"); got != address {
		t.Errorf("the bridge's address was %s and is %s", address, got)
	}
	out := n.run("ip -d link show sluice1; ethtool -k sluice1; ip link show sluice1-ovs")
	for _, want := range []string{"altname sluice:bridge:br-ex", "altname sluice:bridge-port:br-ex", "mtu 1450", "NOARP", "tx-checksumming: off", "tx-tcp-segmentation: off", "tx-tcp6-segmentation: off", "generic-segmentation-offload: off"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	index, ok := d.IfIndex("br-ex")
	if name, ok2 := d.Name(index); !ok || !ok2 || name != "sluice1" {
		t.Errorf("ifindex %d, name %q", index, name)
	}

	// Another process finds the same pair; what is damaged shows and is repaired.
	d = n.links()
	for _, damage := range []string{
		"ip link set sluice1 down",
		"sysctl -qw net.ipv4.conf.sluice1.rp_filter=0",
		"ethtool -K sluice1 tx on",
		"ip link set sluice1 mtu 700",
		"ovs-vsctl del-port br-ex sluice1-ovs",
		"ovs-vsctl clear port sluice1-ovs trunks",
		"ovs-ofctl del-flows unix:" + n.path("br-ex.mgmt"),
		"ovs-ofctl mod-port unix:" + n.path("br-ex.mgmt") + " sluice1-ovs flood",
		"ip link del sluice1",
	} {
		if !n.intact(d, "br-ex") {
			t.Fatalf("before %q it is not intact", damage)
		}
		n.run(damage)
		n.until("damage shows: "+damage, func() bool { return !n.intact(d, "br-ex") })
		n.pair(d, "br-ex")
		n.until("repaired: "+damage, func() bool { return n.intact(d, "br-ex") })
	}
	if i, _ := d.IfIndex("br-ex"); i == 0 || i == index {
		t.Errorf("the new pair has ifindex %d", i)
	}

	if errs := d.Delete(ctx, []intent.BridgeKey{"br-ex", "br-none"}); errs != nil {
		t.Fatal(errs)
	}
	out = n.run("ip link; ovs-vsctl list-ports br-ex; ovs-ofctl dump-flows unix:" + n.path("br-ex.mgmt"))
	if strings.Contains(out, "sluice1") || strings.Contains(out, "0x736c7569") || !strings.Contains(out, "sluice0-ovs") {
		t.Fatalf("after deletion: %s", out)
	}
	if got, err := d.List(ctx); err != nil || len(got) != 0 {
		t.Fatalf("after deletion: %v, %v", got, err)
	}
}

// A pair that the host's routes are asked for forwards at sluice<N>, and there alone;
// a change of that is made in place.
func TestRoutedPair(t *testing.T) {
	n := newNode(t)
	plain, routed := n.links(), n.linksFor(true)
	n.pair(plain, "br-ex")
	index, _ := plain.IfIndex("br-ex")
	knobs := func() string {
		return n.run("cd /proc/sys/net; for f in ipv4 ipv6; do cat $f/conf/sluice1/forwarding $f/conf/sluice1-ovs/forwarding; done | xargs")
	}
	for _, c := range []struct {
		d, other *kernel.BridgeLinks
		want     string
	}{{routed, plain, "1 0 1 0"}, {plain, routed, "0 0 0 0"}} {
		if n.intact(c.d, "br-ex") {
			t.Errorf("before the change to %s it is as wanted", c.want)
		}
		n.pair(c.d, "br-ex")
		if got := strings.TrimSpace(knobs()); got != c.want || !n.intact(c.d, "br-ex") || n.intact(c.other, "br-ex") {
			t.Errorf("forwarding is %s, want %s", got, c.want)
		}
	}
	if now, _ := plain.IfIndex("br-ex"); now != index {
		t.Errorf("the pair was made anew: ifindex %d, before %d", now, index)
	}
}

// A pair that was made anew carries frames: ovs-vswitchd opens the new device.
func TestNewPairCarriesFrames(t *testing.T) {
	n := newNode(t)
	d := n.links()
	n.pair(d, "br-ex")
	n.run("ip link del sluice1")
	n.pair(d, "br-ex")
	n.run("ovs-ofctl add-flow unix:" + n.path("br-ex.mgmt") + " priority=300,in_port=phys,actions=output:sluice1-ovs --names")
	received := func() string { return n.run(`awk '$1 == "sluice1:" { print $3 }' /proc/net/dev`) }
	before := received()
	n.until("a frame comes out of the new pair", func() bool {
		n.run("printf 0200000000aa0200000000bb88b5000000000000000000000000 | xxd -r -p | socat -u - INTERFACE:wire")
		return received() != before
	})
}

// While ovs-vswitchd is stopped there are no flows to remove, and the pair goes.
func TestRemoveWithoutDaemon(t *testing.T) {
	n := newNode(t)
	d := n.links()
	n.pair(d, "br-ex")
	n.stop(n.daemon)
	if errs := d.Delete(context.Background(), []intent.BridgeKey{"br-ex"}); errs != nil {
		t.Fatal(errs)
	}
	if out := n.run("ip link; ovs-vsctl list-ports br-ex"); strings.Contains(out, "sluice1") {
		t.Errorf("after deletion: %s", out)
	}
}

// A program that was taken off shows, and applying puts it back.
func TestProgramTakenOff(t *testing.T) {
	n := newNode(t)
	attached, attaches := false, 0
	d := kernel.NewBridgeLinks(kernel.BridgeLinksConfig{
		Namespace: netns.Named(n.ns), Ports: n.sw, MTU: 1450,
		Attach:   func(context.Context, string, int) error { attached, attaches = true, attaches+1; return nil },
		Attached: func(int) (bool, error) { return attached, nil },
	})
	n.pair(d, "br-ex")
	if damage, err := d.Damage(); !n.intact(d, "br-ex") || err != nil || len(damage) != 0 {
		t.Fatalf("damage %q, %v", damage, err)
	}
	attached = false
	if damage, err := d.Damage(); n.intact(d, "br-ex") || err != nil || len(damage) != 1 {
		t.Errorf("without the program: damage %q, %v", damage, err)
	}
	n.pair(d, "br-ex")
	if !n.intact(d, "br-ex") || attaches != 2 {
		t.Errorf("attached %d times", attaches)
	}
	for _, damage := range []string{
		"ip link set sluice1 down", "sysctl -qw net.ipv6.conf.sluice1.disable_ipv6=0", "ip link set sluice1 mtu 700", "ip link set sluice1-ovs mtu 700",
		"ip link del sluice1",
	} {
		n.run(damage)
		if found, err := d.Damage(); err != nil || len(found) != 1 {
			t.Errorf("after %q: %q, %v", damage, found, err)
		}
		n.pair(d, "br-ex")
	}
}

// A port of somebody else's with the wanted name is an error and stays.
func TestForeignPort(t *testing.T) {
	n := newNode(t)
	n.run("ovs-vsctl add-port br-ex sluice0-ovs")
	n.until("the port shows", func() bool { _, ok := n.sw.HasPort("sluice0-ovs"); return ok })
	if err := n.sw.EnsurePort(context.Background(), "br-ex", "sluice0-ovs"); !errors.Is(err, reconcile.ErrForeign) {
		t.Fatalf("error: %v", err)
	}
	if out := n.run("ovs-vsctl get port sluice0-ovs external_ids trunks"); strings.TrimSpace(out) != "{}\n[]" {
		t.Fatalf("touched: %s", out)
	}
}

// Tenant frames go where the flows say and nowhere else: with the bridge's
// addresses forgotten, and with no flows at all, which is what a bridge has
// just after ovs-vswitchd started.
func TestNoFlood(t *testing.T) {
	n := newNode(t)
	d := n.links()
	n.pair(d, "br-ex")
	steering := ovs.NewSteering(n.sw)
	n.apply(steering, rowsOf("br-ex", 0))
	mgmt := "unix:" + n.path("br-ex.mgmt")

	// One frame of each kind, as hex: from OVN to the fabric, back, and one from
	// the fabric that no flow is for.
	fromOVN := "0200000000ee020000000001" + "0800" + "4500001c00010000401100000a0a0005cb007107" + "0001000200080000"
	toOVN := "020000000001020000000002" + "0800" + "4500001c00010000401100000a0a00630a0a0005" + "0001000200080000"
	stray := "0200000000aa020000000002" + "0800" + "4500001c00010000401100000a0a00630a0a0005" + "0001000200080000"
	send := func(device, frame string) {
		n.run("printf " + frame + " | xxd -r -p | socat -u - INTERFACE:" + device)
	}
	capture := func(device string) func() string {
		cmd := exec.Command("nsenter", "--net=/run/netns/"+n.ns, "tcpdump", "--immediate-mode", "-l", "-nne", "-Q", "in", "-i", device,
			"ether src 02:00:00:00:00:01 or ether src 02:00:00:00:00:02")
		var out bytes.Buffer
		cmd.Stdout = &out
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stderr)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "listening on") {
		}
		return func() string {
			_ = cmd.Process.Signal(syscall.SIGINT)
			for lines.Scan() {
			}
			_ = cmd.Wait()
			return strings.TrimSpace(out.String())
		}
	}
	round := func() (wire, tap, ours string) {
		n.run("OVS_RUNDIR=" + n.dir + " ovs-appctl -t " + n.path("vs.ctl") + " fdb/flush br-ex; ovs-appctl -t " + n.path("vs.ctl") + " fdb/flush br-int")
		w, p, o := capture("wire"), capture("tap"), capture("sluice1")
		for range 3 {
			send("tap", fromOVN)
			send("sluice1", toOVN)
			send("sluice1", stray)
		}
		n.run("sleep 0.5")
		return w(), p(), o()
	}
	wire, tap, ours := round()
	if wire != "" {
		t.Errorf("tenant frames on the physical port: %s", wire)
	}
	if c := strings.Count(tap, "ethertype"); c != 3 {
		t.Errorf("want 3 frames to OVN, got %d: %s", c, tap)
	}
	if c := strings.Count(ours, "ethertype"); c != 3 || strings.Count(ours, nextHopMAC.String()) != 3 {
		t.Errorf("want 3 frames from OVN with the next-hop MAC, got %d: %s", c, ours)
	}

	n.run("ovs-ofctl del-flows " + mgmt + "; ovs-ofctl add-flow " + mgmt + " actions=NORMAL")
	wire, _, ours = round()
	if !strings.Contains(wire, "02:00:00:00:00:01 >") {
		t.Errorf("the control, OVN's own frames under NORMAL, is not on the physical port: %s", wire)
	}
	if strings.Contains(wire, "02:00:00:00:00:02 >") {
		t.Errorf("without flows, frames of ours on the physical port: %s", wire)
	}
	if ours != "" {
		t.Errorf("without flows, frames flooded to ours: %s", ours)
	}
}
