package kernel_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type host struct {
	t  *testing.T
	ns string
}

func newHost(t *testing.T, suffix string) *host {
	t.Helper()
	h := &host{t, fmt.Sprintf("slk%d%s", os.Getpid(), suffix)}
	if out, err := exec.Command("ip", "netns", "add", h.ns).CombinedOutput(); err != nil {
		t.Fatalf("ip netns add: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", h.ns).Run() })
	h.run("ip link set lo up")
	return h
}

func (h *host) namespace() netns.Namespace { return netns.Named(h.ns) }

func (h *host) command(args ...string) *exec.Cmd {
	return exec.Command("nsenter", append([]string{"--net=/run/netns/" + h.ns}, args...)...)
}

func (h *host) run(script string) string {
	h.t.Helper()
	out, err := h.command("sh", "-ec", script).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

func nothing(context.Context, string, int) error { return nil }

func (h *host) fabric(attach kernel.Attach) *kernel.Fabric {
	return kernel.NewFabric(kernel.FabricConfig{Namespace: h.namespace(), RouterMAC: intent.MAC{2, 1, 1, 1, 1, 1}, Attach: attach})
}

func TestFabric(t *testing.T) {
	h := newHost(t, "")
	ctx := context.Background()
	f := h.fabric(func(_ context.Context, name string, ifindex int) error {
		if out := h.run("ip -br link show " + name); strings.Contains(out, "UP") {
			t.Errorf("up before the programs: %s", out)
		}
		return nil
	})
	index, err := f.Ensure(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := h.run("ip -d link show sluice-vxlan; ip addr show sluice-vxlan")
	for _, want := range []string{"\n    vxlan ", " external ", "dstport 4789", "nolearning", "NOARP", "UP", "addrgenmode none", "altname sluice:fabric", "mtu 65000", "ether fe:01:01:01:01:01 "} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in: %s", want, out)
		}
	}
	if strings.Contains(out, "inet") {
		t.Errorf("it has addresses: %s", out)
	}
	// Drift is corrected, the device stays.
	h.run("ip link set sluice-vxlan address fe:73:6c:75:ff:ff; sysctl -qw net.ipv4.conf.sluice-vxlan.rp_filter=0 net.ipv6.conf.sluice-vxlan.disable_ipv6=0")
	again, err := h.fabric(nothing).Ensure(ctx)
	if err != nil || again != index {
		t.Fatalf("again: %d, %v; was %d", again, err, index)
	}
	if got := h.run("sysctl -n net.ipv4.conf.sluice-vxlan.rp_filter net.ipv6.conf.sluice-vxlan.disable_ipv6"); got != "1\n1\n" {
		t.Errorf("sysctls: %q", got)
	}
	if out := h.run("ip link show sluice-vxlan"); !strings.Contains(out, "ether fe:01:01:01:01:01 ") {
		t.Errorf("its address is another one: %s", out)
	}
	if err := f.Remove(); err != nil {
		t.Fatal(err)
	}
	if err := f.Remove(); err != nil {
		t.Fatalf("removing what is gone: %v", err)
	}
}

func TestFabricAttachFails(t *testing.T) {
	h := newHost(t, "")
	broken := errors.New("no program")
	if _, err := h.fabric(func(context.Context, string, int) error { return broken }).Ensure(context.Background()); !errors.Is(err, broken) {
		t.Fatalf("error: %v", err)
	}
	if out := h.run("ip -br link show sluice-vxlan"); !strings.Contains(out, "DOWN") {
		t.Fatalf("not down: %s", out)
	}
}

func TestFabricForeignAndUnfinished(t *testing.T) {
	h := newHost(t, "")
	h.run("ip link add sluice-vxlan type vxlan external dstport 4789")
	before := h.run("ip -d link show sluice-vxlan")
	if _, err := h.fabric(nothing).Ensure(context.Background()); !errors.Is(err, reconcile.ErrForeign) {
		t.Fatalf("error: %v", err)
	}
	if err := h.fabric(nothing).Remove(); !errors.Is(err, reconcile.ErrForeign) {
		t.Fatalf("removal: %v", err)
	}
	if after := h.run("ip -d link show sluice-vxlan"); after != before {
		t.Fatalf("it was touched: %s", after)
	}
	// What a crash between creation and mark leaves is taken over.
	h.run("ip link set sluice-vxlan address fe:73:6c:75:ff:ff")
	if _, err := h.fabric(nothing).Ensure(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func TestFabricPortHeld(t *testing.T) {
	for _, tc := range []struct{ name, script, holder string }{
		{"classic vxlan, down", "ip link add vxlan7 type vxlan id 7 dstport 4789", "link vxlan7 (vxlan)"},
		{"Open vSwitch", "ip link add vxlan_sys_4789 type vxlan external dstport 4789; ip link set vxlan_sys_4789 up", "Open vSwitch"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHost(t, "")
			h.run(tc.script)
			_, err := h.fabric(nothing).Ensure(context.Background())
			held, ok := errors.AsType[*kernel.PortHeldError](err)
			if !ok || !strings.Contains(held.Holder, tc.holder) || held.Port != 4789 {
				t.Fatalf("error: %v", err)
			}
		})
	}
	for _, listen := range []string{"UDP4-RECV:4789", "UDP6-RECV:4789"} {
		t.Run(listen, func(t *testing.T) {
			h := newHost(t, "")
			socat := h.command("socat", "-u", listen, "STDOUT")
			if err := socat.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = socat.Process.Kill(); _ = socat.Wait() }()
			waitFor(t, "socket", func() bool { return strings.Contains(h.run("ss -lnu"), ":4789") })
			_, err := h.fabric(nothing).Ensure(context.Background())
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("process socat (pid %d)", socat.Process.Pid)) {
				t.Fatalf("error: %v", err)
			}
		})
	}
}

// A device of the other form that works is left alone while the UDP port is held by
// others, too, or only asked for; and it gives way in one step.
func TestFabricFromVRFDevices(t *testing.T) {
	h := newHost(t, "")
	h.run(`ip link add vxlan-1001 type vxlan id 1001 dstport 4789; ip link property add dev vxlan-1001 altname sluice:vrf-vxlan:1001
		ip link set vxlan-1001 up; ip link add theirs type vxlan id 7 dstport 4789`)
	state := func() string {
		return strings.Join(strings.Fields(h.run("ip -br link show type vxlan | sed 's/@[^ ]*//' | awk '{print $1, ($0 ~ /[<,]UP/)}' | sort")), " ")
	}
	_, err := h.fabric(nothing).Ensure(t.Context())
	if held, ok := errors.AsType[*kernel.PortHeldError](err); !ok || !strings.Contains(held.Holder, "theirs") {
		t.Fatalf("error: %v", err)
	}
	if got := state(); got != "theirs 0 vxlan-1001 1" {
		t.Fatalf("after the port was found held: %s", got)
	}
	h.run("ip link del theirs")
	for range 2 {
		if _, waits, err := h.fabric(nothing).Prepare(t.Context()); err != nil || !waits {
			t.Fatalf("prepared: %v, %v", waits, err)
		}
		if got := state(); got != "sluice-vxlan 0 vxlan-1001 1" {
			t.Fatalf("prepared: %s", got)
		}
	}
	if _, err := h.fabric(nothing).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := state(); got != "sluice-vxlan 1 vxlan-1001 0" {
		t.Fatalf("changed over: %s", got)
	}
	if _, waits, err := h.fabric(nothing).Prepare(t.Context()); err != nil || waits {
		t.Fatalf("prepared again: %v, %v", waits, err)
	}
}

// A device that cannot be kept stays until the port that the new one needs is free.
func TestFabricOfAnotherPort(t *testing.T) {
	h := newHost(t, "")
	if _, err := h.fabric(nothing).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	h.run("ip link add theirs type vxlan id 7 dstport 4790")
	before := h.run("ip -o -d link show sluice-vxlan")
	config := kernel.FabricConfig{Namespace: h.namespace(), Port: 4790, Attach: nothing}
	_, err := kernel.NewFabric(config).Ensure(t.Context())
	if _, held := errors.AsType[*kernel.PortHeldError](err); !held {
		t.Fatalf("error: %v", err)
	}
	if after := h.run("ip -o -d link show sluice-vxlan"); after != before {
		t.Fatalf("it was\n%s\nand is\n%s", before, after)
	}
	h.run("ip link del theirs")
	if _, err := kernel.NewFabric(config).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
}
