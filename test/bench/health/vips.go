package health

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/lab"
)

const (
	vipPort = 80
	// firstPort is the backends' port of the first VIP; each of the others has the next, so
	// that each has a probe of its own.
	firstPort = 20_000
	mostVIPs  = 40_000
	// probed is the address of the backend whose health changes.
	probed = "10.10.0.21"
)

// vip is the VIP of a number.
func vip(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 98, byte(i >> 8), byte(i)}), vipPort)
}

// vipKey is struct vip_key of TCP.
func vipKey(scope intent.VNI, at netip.AddrPort) []byte {
	a := at.Addr().As16()
	return append([]byte{byte(scope), byte(scope >> 8), byte(scope >> 16), byte(scope >> 24), byte(at.Port() >> 8), byte(at.Port()), 6, 0}, a[:]...)
}

// addVIPs makes the load balancers, in some transactions.
func (b *bench) addVIPs(ctx context.Context) error {
	const at = 50 // load balancers of a transaction
	for first := 0; first < b.VIPs; first += at {
		var args []string
		for i := first; i < min(first+at, b.VIPs); i++ {
			args = append(args, balancer(i)...)
		}
		if _, err := b.lab.NB(ctx, cloud, args[1:]...); err != nil {
			return fmt.Errorf("load balancers from number %d on: %w", first, err)
		}
	}
	return nil
}

// balancer is the commands, each after "--", that make the load balancer of a VIP. Its
// backends are probed so seldom, and given up so late, that OVN changes nothing by itself.
func balancer(i int) []string {
	port, id := firstPort+i, fmt.Sprintf("@lb%d", i)
	return []string{
		"--", fmt.Sprintf("--id=@check%d", i), "create", "Load_Balancer_Health_Check", fmt.Sprintf("vip=%q", vip(i)),
		"options:interval=100000", "options:timeout=1000", "options:success_count=3", "options:failure_count=30000",
		"--", "--id=" + id, "create", "Load_Balancer", fmt.Sprintf("name=many%d", i), "protocol=tcp",
		fmt.Sprintf("vips:%q=%q", vip(i), fmt.Sprintf("%s:%d,10.10.0.22:%d", probed, port, port)),
		fmt.Sprintf("ip_port_mappings:%s=%q", probed, "be1:10.10.0.254"), `ip_port_mappings:10.10.0.22="be2:10.10.0.254"`, fmt.Sprintf("health_check=@check%d", i),
		"--", "add", "Logical_Router", lab.RouterName("red"), "load_balancer", id,
		"--", "add", "Logical_Switch", lab.SwitchName("red", "net"), "load_balancer", id,
	}
}
