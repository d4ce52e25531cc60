package tap_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/dataplane/tap"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Devices of the kernel's, as nova, libvirt and container runtimes make them.
func TestFind(t *testing.T) {
	node, pod := fmt.Sprintf("sltap%da", os.Getpid()), fmt.Sprintf("sltap%db", os.Getpid())
	run := func(command string) {
		t.Helper()
		if out, err := exec.Command("sh", "-ec", command).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() { _ = exec.Command("sh", "-c", "ip netns del "+node+"; ip netns del "+pod).Run() })
	run(strings.NewReplacer("NODE", node, "POD", pod).Replace(`
		ip netns add NODE; ip netns add POD
		ip -n NODE tuntap add tapdirect mode tap
		ip -n NODE link add other0 type vxlan id 1 dstport 4790
		ip -n NODE link add pod0 type veth peer name eth0 netns POD
		ip -n NODE link add qbr1 type bridge
		ip -n NODE link add qvo1 type veth peer name qvb1
		ip -n NODE link set qvb1 master qbr1
		ip -n NODE tuntap add tap1 mode tap
		ip -n NODE link set tap1 master qbr1
		ip -n NODE link add qbr2 type bridge
		ip -n NODE link add qvo2 type veth peer name qvb2
		ip -n NODE link set qvb2 master qbr2
		ip -n NODE link add qvo3 type veth peer name qvb3`))
	f := tap.New(netns.Named(node))
	for _, tt := range []struct {
		name string
		is   intent.Interface
		want string
		why  string
	}{
		{"a tap", intent.Interface{Name: "tapdirect"}, "tapdirect", ""},
		{"no tap, and no veth", intent.Interface{Name: "other0", Type: "system"}, "other0", ""},
		{"a pod", intent.Interface{Name: "pod0"}, "pod0", ""},
		{"hybrid plug", intent.Interface{Name: "qvo1"}, "tap1", ""},
		{"hybrid plug into the userspace datapath", intent.Interface{Name: "qvo1", Userspace: true}, "tap1", ""},
		{"a bridge without a VM", intent.Interface{Name: "qvo2"}, "", reason.TapUnknown},
		{"a pair without a bridge", intent.Interface{Name: "qvo3"}, "", reason.TapUnknown},
		{"nothing", intent.Interface{Name: "tap9"}, "", reason.TapMissing},
		{"a tap of the userspace datapath", intent.Interface{Name: "tapdirect", Userspace: true}, "", reason.TapNetdev},
		{"a pod of the userspace datapath", intent.Interface{Name: "pod0", Userspace: true}, "", reason.TapNetdev},
		{"vhost-user", intent.Interface{Name: "vhu1", Type: "dpdkvhostuserclient", Userspace: true}, "", reason.TapNetdev},
		{"a tap that is still to come, of the userspace datapath", intent.Interface{Name: "tap8", Userspace: true}, "", reason.TapMissing},
		{"internal", intent.Interface{Name: "other0", Type: "internal"}, "", reason.TapUnknown},
	} {
		got, err := f.Find([]intent.Interface{tt.is})
		if err != nil {
			t.Fatal(err)
		}
		if d := got[tt.is.Name]; d.Name != tt.want || d.Reason != tt.why || (d.IfIndex == 0) != (tt.want == "") || (d.Detail == "") != (tt.why == "") {
			t.Errorf("%s: %+v, want %q %q", tt.name, d, tt.want, tt.why)
		}
	}
	// A second VM on the bridge makes it unclear whose the port is.
	run(strings.ReplaceAll("ip -n NODE tuntap add tap2 mode tap; ip -n NODE link set tap2 master qbr1", "NODE", node))
	if got, err := f.Find([]intent.Interface{{Name: "qvo1"}}); err != nil || got["qvo1"].Name != "tap1" {
		t.Errorf("nothing was said to have changed: %+v %v", got, err)
	}
	f.Forget()
	if got, err := f.Find([]intent.Interface{{Name: "qvo1"}, {Name: "tapdirect"}}); err != nil || got["qvo1"].Reason != reason.TapUnknown || got["tapdirect"].Name != "tapdirect" {
		t.Errorf("with two VMs on a bridge: %+v %v", got, err)
	}
	if _, err := tap.New(netns.Named("sltap-none")).Find(nil); err == nil {
		t.Error("a namespace that is not there was looked at")
	}
}
