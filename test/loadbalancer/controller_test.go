package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/openstack"
)

// Load balancers that are made by the real openstack command answer a client in the fabric, and
// VMs of the VIP's network and of another one, by eBPF. The other replica shows the same at
// once. When they are deleted nothing is left.
func TestByOpenStack(t *testing.T) {
	w := shared(t)
	client, err := openstack.NewClient(t.Context(), "../../tools/openstack.sh")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.StartControllers(t.Context(), filepath.Join(bin, "sluice-controller"), client); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		return labtest.Exec(t, w.Lab, "api", append([]string{"openstack"}, args...)...)
	}
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
	for _, what := range []string{"", "listener", "pool"} {
		list := append(strings.Fields("openstack loadbalancer "+what), "list", "-f", "json")
		first := labtest.Exec(t, w.Lab, "api", list...)
		if second := labtest.Exec(t, w.Lab, "api", append([]string{"env", "OS_ENDPOINT=http://" + lab.Replicas[1]}, list...)...); first != second || !strings.Contains(first, "ACTIVE") && what == "" {
			t.Errorf("%v: one replica shows\n%s\nthe other\n%s", list, first, second)
		}
	}
	if out, err := w.Exec(t.Context(), "api", "openstack", "loadbalancer", "delete", "web4"); err == nil || !strings.Contains(err.Error(), "it has children (HTTP 400)") {
		t.Errorf("delete with children: %v\n%s", err, out)
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
