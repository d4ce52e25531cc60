package ovs_test

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

var _ kernel.VRFPorts = (*ovs.Switch)(nil)

const vrfVNI = intent.VNI(1001)

var (
	plainPort  = intent.VRFPortKey{Bridge: "br-ex", VNI: vrfVNI}
	taggedPort = intent.VRFPortKey{Bridge: "br-ex", VLAN: 100, VNI: vrfVNI}
	samePrefix = cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
)

// onKernel are the rows of rowsOf for a VRF on the kernel path.
func onKernel(rows table) table {
	out := table{}
	for k, v := range rows {
		if k.Kind == intent.SteerSource || k.Kind == intent.SteerToOVN {
			v.Path, v.VNI = intent.PathKernel, vrfVNI
		}
		out[k] = v
	}
	return out
}

// vrfEnds makes the pairs of the VRF, and ports of one end of each.
func (n *node) vrfEnds() {
	n.t.Helper()
	for device, key := range map[string]intent.VRFPortKey{"so1001-0": plainPort, "so1001-1": taggedPort} {
		end := strings.Replace(device, "so", "sv", 1)
		n.run("ip link add " + end + " type veth peer name " + device + "; ip link set " + end + " up; ip link set " + device + " up")
		if err := n.sw.EnsureVRFPort(context.Background(), key, device); err != nil {
			n.t.Fatal(err)
		}
	}
}

func TestVRFPorts(t *testing.T) {
	n := newNode(t)
	ctx := context.Background()
	n.ensure()
	n.vrfEnds()
	want := map[intent.VRFPortKey]string{plainPort: "so1001-0", taggedPort: "so1001-1"}
	intact := func() bool {
		got, err := n.sw.OurVRFPorts()
		if err != nil || !maps.Equal(got, want) || n.sw.CheckPort(ctx, "br-ex", "sluice0-ovs") != nil {
			return false
		}
		for k, device := range want {
			if n.sw.CheckVRFPort(ctx, k, device) != nil {
				return false
			}
		}
		return true
	}
	n.until("the ports are as they were made", intact)
	if err := n.sw.EnsureVRFPort(ctx, intent.VRFPortKey{Bridge: "br-ex", VNI: 7}, "so1001-0"); !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("the port of another VRF: %v", err)
	}
	if err := n.sw.EnsureVRFPort(ctx, plainPort, "phys"); !errors.Is(err, reconcile.ErrForeign) {
		t.Errorf("a port of another: %v", err)
	}
	for _, damage := range []string{
		"ovs-vsctl del-port br-ex so1001-0",
		"ovs-vsctl clear port so1001-1 trunks",
		"ovs-ofctl del-flows unix:" + n.path("br-ex.mgmt"),
		"ovs-ofctl mod-port unix:" + n.path("br-ex.mgmt") + " so1001-1 flood",
	} {
		n.run(damage)
		n.until("damage shows: "+damage, func() bool { return !intact() })
		n.ensure()
		for k, device := range want {
			if err := n.sw.EnsureVRFPort(ctx, k, device); err != nil {
				t.Fatalf("after %s: %v", damage, err)
			}
		}
		n.until("repaired: "+damage, intact)
	}
	if err := n.sw.RemoveVRFPort(ctx, plainPort); err != nil {
		t.Fatal(err)
	}
	delete(want, plainPort)
	n.until("one less", intact)
	for range 2 {
		if err := n.sw.RemoveVRFPort(ctx, taggedPort); err != nil {
			t.Fatal(err)
		}
	}
	delete(want, taggedPort)
	n.until("none", intact)
	if err := n.sw.RemovePort(ctx, "br-ex"); err != nil {
		t.Fatal(err)
	}
	if out := n.dump() + n.run("ovs-vsctl list-ports br-ex"); strings.Contains(out, "0x736c7569") || strings.Contains(out, "so1001") {
		t.Errorf("left over: %s", out)
	}
}

// The flows of both paths are read back as they were written, and a change of path
// leaves none of the other.
func TestSteeringOfTheKernelPath(t *testing.T) {
	n := newNode(t)
	n.ensure()
	d := ovs.NewSteering(n.sw)
	ebpf := rowsOf("br-ex", 0)
	maps.Copy(ebpf, rowsOf("br-ex", 100))
	for k, v := range onKernel(ebpf) {
		if v.Path == intent.PathKernel {
			errs := d.Apply(t.Context(), []reconcile.Row[intent.SteeringKey, intent.Steering]{{Key: k, Value: v}})
			if len(errs) != 1 || !errors.Is(errs[0], reconcile.ErrNotReady) {
				t.Fatalf("without the VRF's port: %v", errs)
			}
			break
		}
	}
	n.vrfEnds()
	for _, want := range []table{ebpf, onKernel(ebpf), ebpf} {
		n.apply(d, want)
		if diff := cmp.Diff(want, n.list(d), samePrefix); diff != "" {
			t.Fatalf("written and read back (-want +got):\n%s\n%s", diff, n.dump())
		}
		before := n.dump()
		n.apply(d, want)
		if n.dump() != before {
			t.Fatal("applying again changed flows")
		}
	}
	n.apply(d, onKernel(ebpf))
	if err := n.sw.RemoveVRFPort(t.Context(), taggedPort); err != nil {
		t.Fatal(err)
	}
	for k, v := range n.list(d) {
		if k.Gateway.VLAN == 100 && v == onKernel(ebpf)[k] && v.Path == intent.PathKernel {
			t.Errorf("%s is listed as it was, without its port", k)
		}
	}
}

// frames sends a frame until one arrives that tcpdump shows with the words.
func (n *node) frames(into, hex, out string, words ...string) {
	n.t.Helper()
	n.until("frame from "+into+" to "+out, func() bool {
		dump := n.command("timeout", "2", "tcpdump", "-Z", "root", "-i", out, "-Q", "in", "-c", "1", "-e", "-nn", "-l", "ether host 02:00:00:00:00:01")
		text := &strings.Builder{}
		dump.Stdout = text
		if err := dump.Start(); err != nil {
			n.t.Fatal(err)
		}
		time.Sleep(300 * time.Millisecond)
		n.run("printf " + hex + " | xxd -r -p | socat -u - INTERFACE:" + into)
		_ = dump.Wait()
		for _, w := range words {
			if !strings.Contains(text.String(), w) {
				return false
			}
		}
		return true
	})
}

// Tags are put on and taken off by the flows, and frames of either path arrive
// while a VRF changes its path.
func TestVRFPortsCarryFrames(t *testing.T) {
	n := newNode(t)
	n.ensure()
	n.vrfEnds()
	d := ovs.NewSteering(n.sw)
	rows := rowsOf("br-ex", 0)
	maps.Copy(rows, rowsOf("br-ex", 100))
	n.apply(d, onKernel(rows))
	const (
		toGateway = "020000000001020000000002"
		tag100    = "81000064"
		from      = "0200000000aa020000000001"
		ipv4      = "08004500001c000000004011b0c20a0a0005c00002010001000200080000"
	)
	n.frames("sv1001-0", toGateway+ipv4, "tap", "02:00:00:00:00:02 > 02:00:00:00:00:01", "ethertype IPv4 (0x0800)")
	n.frames("sv1001-1", toGateway+ipv4, "tap", "02:00:00:00:00:02 > 02:00:00:00:00:01", "vlan 100")
	n.frames("sluice0", toGateway+tag100+ipv4, "tap", "vlan 100")
	n.frames("tap", from+ipv4, "sv1001-0", "02:00:00:00:00:01 > 02:00:00:00:00:02", "ethertype IPv4 (0x0800)")
	n.frames("tap", from+tag100+ipv4, "sv1001-1", "02:00:00:00:00:01 > 02:00:00:00:00:02", "ethertype IPv4 (0x0800)")
	n.apply(d, rows)
	n.frames("tap", from+tag100+ipv4, "sluice0", "02:00:00:00:00:01 > 02:00:00:00:00:02", "vlan 100")
}
