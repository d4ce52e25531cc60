package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/openstack"
)

// Load balancers that are made by the real openstack command answer a client in the fabric, and
// machines of the VIP's network and of another one, by eBPF. When they are deleted nothing is left.
func TestByOpenStack(t *testing.T) {
	w := shared(t)
	client, err := openstack.NewClient(t.Context(), "../../tools/openstack.sh")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "sluice-controller")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/sluice-controller").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	central := w.node("a-central")
	c, err := openstack.StartController(program, dir, ovsdbtest.FreeAddress(t, "127.0.0.1"), "unix:"+filepath.Join(central.Dir, "nb.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Errorf("the controller ended: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the controller:\n%s", c.Log())
		}
	}()
	run := func(args ...string) {
		t.Helper()
		if _, err := client.Run(t.Context(), c.Address, args...); err != nil {
			t.Fatal(err)
		}
	}
	w.eventually("an answer of the controller", func() error {
		_, err := client.Run(t.Context(), c.Address, "loadbalancer", "list")
		return err
	})
	vips := map[string]netip.Addr{"4": netip.MustParseAddr("10.10.0.200"), "6": netip.MustParseAddr("fd00:10::200")}
	for family, vip := range vips {
		name, subnet := "web"+family, "red-net-"+family
		run("loadbalancer", "create", "--name", name, "--vip-subnet-id", subnet, "--vip-address", vip.String(), "--wait")
		run("loadbalancer", "pool", "create", "--name", name, "--loadbalancer", name, "--protocol", "TCP", "--lb-algorithm", "SOURCE_IP_PORT", "--wait")
		for i := 1; i <= 2; i++ {
			run("loadbalancer", "member", "create", "--address", backendAddress(vip, i), "--subnet-id", subnet, "--protocol-port", fmt.Sprint(backend.HTTPPort), "--wait", name)
		}
		run("loadbalancer", "listener", "create", "--protocol", "TCP", "--protocol-port", fmt.Sprint(vipHTTP), "--default-pool", name, "--wait", name)
	}
	for _, vip := range vips {
		w.eventually(intent.FormatEndpoint(vip, vipHTTP)+" is balanced by eBPF on a1", func() error {
			list, err := w.vips("a1")
			for _, v := range list {
				if v.Address == vip && v.Path == "ebpf" && v.State == "ok" {
					return err
				}
			}
			return fmt.Errorf("%+v (%w)", list, err)
		})
		for _, from := range []string{"c-fabric", "c-same", "c-net"} {
			w.answered(from, "tcp", vip)
		}
	}
	for family := range vips {
		run("loadbalancer", "delete", "--cascade", "--wait", "web"+family)
	}
	w.eventually("no VIP is left on a1", func() error {
		list, err := w.vips("a1")
		if err == nil && len(list) > 0 {
			err = fmt.Errorf("%+v", list)
		}
		return err
	})
	if out := w.nb("--bare", "--columns=name", "list", "Load_Balancer"); out != "" {
		t.Errorf("rows are left: %s", out)
	}
}

// backendAddress is that of a backend, of the family of a VIP.
func backendAddress(vip netip.Addr, i int) string {
	if vip.Is4() {
		return fmt.Sprintf("10.10.0.%d", 20+i)
	}
	return fmt.Sprintf("fd00:10::%d", 20+i)
}
