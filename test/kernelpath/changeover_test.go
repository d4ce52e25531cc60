//go:build guest

package kernelpath

import (
	"context"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// TestChangeOver goes from sluice-vxlan to a device for the VRF and back: what is
// prepared for the next form does not disturb the one that carries, and what comes
// from a stranger does not reach the tenant in either.
func TestChangeOver(t *testing.T) {
	s := newSite(t, false, false)
	r := s.rows()
	s.mustApply(r)
	s.handOver()
	both := func() {
		t.Helper()
		s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
		s.pings("ovn", "", "10.9.0.1", "fd09::1")
	}
	both()
	s.strangers()

	s.config.Whole = true
	s.config.KeepOut = func() error { return s.data.GuardVTEPs(kernel.DefaultPort) }
	s.path = kernel.NewPath(s.config, s.node)
	if err := s.apply(r); err == nil {
		t.Error("routes of a VRF that sluice-vxlan carries were taken to vxlan-1001")
	}
	both()
	s.forms("sluice-vxlan up, vxlan-1001 down")
	if err := s.path.ChangeOver(); err != nil {
		t.Fatal(err)
	}
	s.forms("sluice-vxlan down, vxlan-1001 up")
	s.mustApply(r)
	if err := s.fabric.Remove(); err != nil {
		t.Fatal(err)
	}
	s.same(r)
	both()
	s.strangers()

	s.config.Whole = false
	s.path = kernel.NewPath(s.config, s.node)
	if _, waits, err := s.fabric.Prepare(t.Context()); err != nil || !waits {
		t.Fatalf("prepared: %v, %v", waits, err)
	}
	if err := s.apply(r); err == nil {
		t.Error("routes of a VRF that vxlan-1001 carries were taken to sluice-vxlan")
	}
	both()
	s.forms("sluice-vxlan down, vxlan-1001 up")
	s.fabric = kernel.NewFabric(kernel.FabricConfig{Namespace: netns.Named("node"), RouterMAC: mac(nodeMAC),
		Attach: func(_ context.Context, _ string, index int) error { return s.data.Attach(ebpf.FabricIn, index) }})
	if _, err := s.fabric.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.mustApply(r)
	s.handOver()
	s.forms("sluice-vxlan up")
	s.same(r)
	both()
	if err := s.data.UnguardVTEPs(); err != nil {
		t.Fatal(err)
	}
	s.strangers()
	if err := s.remove(r); err != nil {
		t.Fatal(err)
	}
	s.same(rows{})
}

// forms are the VXLAN devices of the node.
func (s *site) forms(want string) {
	s.t.Helper()
	var got []string
	for _, name := range []string{"sluice-vxlan", "vxlan-1001"} {
		out, err := try("node", "ip -br link show dev "+name)
		switch {
		case err != nil:
		case strings.Contains(out, ",UP"):
			got = append(got, name+" up")
		default:
			got = append(got, name+" down")
		}
	}
	if all := strings.Join(got, ", "); all != want {
		s.t.Fatalf("there are %s, want %s", all, want)
	}
}

// strangers: with the VNI, from an address that is no VTEP of the fabric.
func (s *site) strangers() {
	s.t.Helper()
	before := s.dropped(drop.UnknownVTEP)
	run(s.t, "pe", "ip addr add 192.0.2.3/24 dev v; ip link set vxlan-1001 type vxlan local 192.0.2.3")
	for _, to := range []string{"10.0.0.5", "fd00::5"} {
		from := map[bool]string{true: "fd09::1", false: "10.9.0.1"}[strings.Contains(to, ":")]
		if out, ok := ping("pe", "-W1 -I "+from, to); ok {
			s.t.Errorf("a stranger reaches %s: %s", to, out)
		}
	}
	run(s.t, "pe", "ip link set vxlan-1001 type vxlan local 192.0.2.2; ip addr del 192.0.2.3/24 dev v")
	if n := s.dropped(drop.UnknownVTEP) - before; n < 2 {
		s.t.Errorf("%d packets of a stranger were counted, want 2 or more", n)
	}
	s.pings("pe", "-I 10.9.0.1", "10.0.0.5", "fd00::5")
}
