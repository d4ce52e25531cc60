package evpn

import (
	"fmt"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// big is a node with vrfs tenants of hosts hosts each on one provider network,
// with a physical gateway or with all of its addresses answered.
func big(vrfs, hosts int, physical bool) (*ovn.Rows, []ovn.Change) {
	c := node(physical)
	for n := 1; n <= vrfs; n++ {
		c.tenant(n, intent.VNI(1000+n))
		for k := range hosts {
			vm := pb(fmt.Sprintf("vm-r%d-%d", n, k), ovn.TypeVIF, fmt.Sprintf("ls-r%d", n), fmt.Sprintf("02:00:00:03:00:%02x 10.10.0.%d", k, 10+k))
			vm.Chassis = there
			c.put(vm)
		}
	}
	rows := c.load()
	var flip []ovn.Change
	for _, ip := range []string{"10.10.0.200", "10.10.0.201"} {
		vm := c["pb-vm-r1-0"].(ovn.PortBinding)
		vm.MAC = []string{"02:00:00:03:00:00 " + ip}
		flip = append(flip, ovn.Set(vm))
	}
	return rows, flip
}

// BenchmarkAll translates 1,000 VRFs with 20,000 hosts from nothing.
func BenchmarkAll(b *testing.B) {
	rows, _ := big(1000, 20, true)
	b.ReportAllocs()
	for b.Loop() {
		NewTranslator(testConfig(), identity{}, &loadbalancer.Book{}).Step(rows, ovn.Dirty{All: true}, true)
	}
}

// BenchmarkOneHost is one VM's change among 1,000 VRFs with 20,000 hosts.
func BenchmarkOneHost(b *testing.B) {
	for name, physical := range map[string]bool{"physical gateway": true, "all answered": false} {
		b.Run(name, func(b *testing.B) { oneHost(b, physical) })
	}
}

func oneHost(b *testing.B, physical bool) {
	rows, flip := big(1000, 20, physical)
	tr := NewTranslator(testConfig(), identity{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		n++
		d := tr.Step(rows, rows.Apply(flip[n%2:n%2+1]), true)
		if len(wanted.Of(d, intent.Routes).Set) != 1 || len(wanted.Of(d, intent.Announcements).Delete) != 1 {
			b.Fatalf("%+v", d)
		}
	}
}
