package kernel_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Check sees what Ensure would do, and does nothing of it.
func TestFabricCheck(t *testing.T) {
	h := newHost(t, "c")
	f := h.fabric(nothing)
	check := func(f *kernel.Fabric, index int, differs ...string) {
		t.Helper()
		before := h.run("ip -d link")
		s, err := f.Check()
		if err != nil {
			t.Fatal(err)
		}
		if s.IfIndex != index || !slices.Equal(s.Differs, differs) {
			t.Errorf("%+v, want index %d and %q", s, index, differs)
		}
		if after := h.run("ip -d link"); after != before {
			t.Errorf("it was\n%s\nand is\n%s", before, after)
		}
	}
	check(f, 0, "is missing")
	index, err := f.Ensure(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	check(f, index)
	h.run("ip link set sluice-vxlan mtu 1500 down; sysctl -qw net.ipv4.conf.sluice-vxlan.rp_filter=0")
	check(f, index, "sluice-vxlan has ipv4 rp_filter=0 and not 1", "has MTU 1500", "is down")
	check(kernel.NewFabric(kernel.FabricConfig{Namespace: h.namespace(), Port: 4790}), 0, "has another UDP port or mode")

	h.run("ip link del sluice-vxlan; ip link add vx0 type vxlan id 7 dstport 4789")
	var held *kernel.PortHeldError
	if _, err := f.Check(); !errors.As(err, &held) {
		t.Errorf("the port is held: %v", err)
	}
	h.run("ip link del vx0; ip link add sluice-vxlan type bridge")
	if _, err := f.Check(); !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("a foreign device: %v", err)
	}
}
