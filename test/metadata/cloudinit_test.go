//go:build !guest

package metadata_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/cloudinit"
	"github.com/ovn-sluice/sluice/test/lab"
)

// cloud-init completes on VMs with IPv4 alone, IPv6 alone and both, in both forms,
// and before a VM has an address, by OVN's DHCP.
func TestCloudInit(t *testing.T) {
	w := shared(t)
	root, err := cloudinit.Debian(t.Context(), "../../tools/cloudinit.sh", "trixie")
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []struct {
		name, chassis string
		v4, v6        bool
		stages        []cloudinit.Stage
	}{
		{"IPv4", "m1", true, false, []cloudinit.Stage{cloudinit.Network}},
		{"IPv6", "m1", false, true, []cloudinit.Stage{cloudinit.Network}},
		{"both", "m1", true, true, []cloudinit.Stage{cloudinit.Network}},
		{"DHCP", "m1", true, true, []cloudinit.Stage{cloudinit.Local}},
		{"IPv4 by namespace", "m2", true, false, []cloudinit.Stage{cloudinit.Network}},
		{"IPv6 by namespace", "m2", false, true, []cloudinit.Stage{cloudinit.Network}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab, nova: w.nova}
			vm := lab.VM{
				Name: fmt.Sprintf("m-init%d", i), Chassis: c.chassis, Tenant: "red", Network: "net", Instance: fmt.Sprintf("inst-init%d", i), Project: "project-red",
				MAC: fmt.Sprintf("fa:16:3e:00:02:%02x", i),
			}
			if c.v4 {
				vm.Addr4 = netip.AddrFrom4([4]byte{10, 30, 0, byte(50 + i)})
			}
			if c.v6 {
				vm.Addr6 = netip.MustParseAddr(fmt.Sprintf("fd00:30::%x", 0x50+i))
			}
			w.add(vm)
			if !c.v6 {
				w.sh(vm.Name, "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
			}
			if c.name == "DHCP" {
				w.leaseTo(vm)
			}
			w.boots(root, vm, c.stages...)
		})
	}
}

// leaseTo has OVN answer a VM's DHCP as Neutron has it, with the route to the
// metadata address, and takes the addresses that the lab has given it.
func (w *world) leaseTo(vm lab.VM) {
	w.Helper()
	n := w.network(vm.Tenant)
	_, mac := n.MetadataPort()
	at, gateway := n.MetadataAddrs()[0].Addr(), n.Subnet4.Addr().Next()
	id := w.nb("create", "DHCP_Options", "cidr="+n.Subnet4.String(), "options:lease_time=43200", "options:mtu=1400",
		"options:router="+gateway.String(), "options:server_id="+at.String(), `options:server_mac="`+mac+`"`,
		fmt.Sprintf(`options:classless_static_route="{169.254.169.254/32,%s, 0.0.0.0/0,%s}"`, at, gateway))
	w.nb("lsp-set-dhcpv4-options", vm.Name, id)
	w.nb("--wait=hv", "sync")
	w.Cleanup(func() { w.nb("dhcp-options-del", id) })
	w.sh(vm.Name, "ip -4 addr flush dev eth0; echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6")
}

// boots runs cloud-init on a VM and compares what it stored.
func (w *world) boots(root cloudinit.Root, vm lab.VM, stages ...cloudinit.Stage) {
	w.Helper()
	n, err := w.Node(vm.Name)
	if err != nil {
		w.Fatal(err)
	}
	begin := time.Now()
	ctx, cancel := context.WithTimeout(w.Context(), 5*time.Minute)
	defer cancel()
	res, err := root.Boot(ctx, "/run/netns/"+n.Netns, stages...)
	if err != nil {
		w.Fatalf("%v\n%s", err, res.Log)
	}
	w.Logf("%s from %s in %d ms", res.DataSource, res.URL, time.Since(begin).Milliseconds())
	if res.InstanceID != vm.Instance || !strings.Contains(res.DataSource, "OpenStack") {
		w.Errorf("it is the instance %q, want %s; data source %q", res.InstanceID, vm.Instance, res.DataSource)
	}
	if stages[len(stages)-1] == cloudinit.Network { // which is what stores them
		if want := userData(vm.Name); !bytes.Equal(res.UserData, want) {
			w.Errorf("%d bytes of user data, want %d", len(res.UserData), len(want))
		}
		if !strings.Contains(res.VendorData, "message: vendor") {
			w.Errorf("vendor data: %q", res.VendorData)
		}
	}
	// For EC2's documents cloud-init uses IPv4 alone.
	if problems := res.Problems(); len(problems) > 0 && vm.Addr4.IsValid() {
		w.Errorf("it complains: %q", problems)
	}
}
