package balancing

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/bench/load"
	"github.com/ovn-sluice/sluice/test/lab"
)

const (
	balanced, without = "red", "blue" // tenants: with load balancers, and with none
	network           = "net"
	vipPort           = 80
)

// asking is a kind of client: a machine of the tenant with load balancers, which has a twin.
type asking struct {
	name string
	// node is the chassis that balances for it.
	node string
	// hang is the command that has a load balancer serve it, and its first word.
	hang []string
	// number tells the VIPs of the kinds apart: a VIP that comes back soon after it has gone
	// may find OVN's conntrack still busy with it.
	number int
}

var (
	fabric  = asking{"c-fabric", "a1", []string{"lr-lb-add", lab.RouterName(balanced)}, 0}
	machine = asking{"c-same", "a2", []string{"ls-lb-add", lab.SwitchName(balanced, network)}, 1}
)

// twin is the machine of the tenant without load balancers that is like this one.
func twin(name string) string { return "p-" + name }

// distant is the chassis of all backends. No client is on it and none comes in by it, so that
// none of them is nearer than the others: what leads more connections to near ones would seem the
// faster for it.
const distant = "a3"

// scenario is lb with the backends on one chassis, and with a twin for each machine of the network.
func scenario(p lab.EVPNParams) lab.Scenario {
	s := lab.LB(p)
	for i := range s.Clouds {
		c := &s.Clouds[i]
		for _, vm := range slices.Clone(c.VMs) {
			if vm.Network == network {
				vm.Name, vm.Tenant = twin(vm.Name), without
				c.VMs = append(c.VMs, vm)
			}
		}
		for k := range c.VMs {
			if strings.HasPrefix(strings.TrimPrefix(c.VMs[k].Name, twin("")), "be") {
				c.VMs[k].Chassis = distant
			}
		}
	}
	return s
}

// up brings the lab up, with sluiced, the servers and nothing that is balanced yet.
func (b *bench) up(ctx context.Context) (err error) {
	begin := time.Now()
	b.lab, err = lab.Up(ctx, scenario(lab.EVPNParams{KernelDatapath: b.KernelDatapath}), lab.Options{Name: b.LabName})
	if err != nil {
		return err
	}
	fmt.Fprintf(b.Out, "lab with %d backends of two tenants is up after %.1f s\n", lab.Backends, time.Since(begin).Seconds())
	if err := b.lab.StartSluiceds(ctx, b.Sluiced, lab.BalancingConfig); err != nil {
		return err
	}
	binary, err := daemons.Beside(b.Sluiced, "sluice-lab")
	if err != nil {
		return err
	}
	for _, name := range backends() {
		for _, vm := range []string{name, twin(name)} {
			if _, err := b.lab.StartBackend(ctx, vm, binary); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) down() error {
	var errs []error
	for name, g := range b.generators {
		if err := g.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("ending the generator on %s: %w", name, err))
		}
	}
	if b.lab != nil {
		errs = append(errs, b.lab.Down())
	}
	return errors.Join(errs...)
}

// generator is that of a machine.
func (b *bench) generator(ctx context.Context, machine string) (*load.Generator, error) {
	if g := b.generators[machine]; g != nil {
		return g, nil
	}
	cmd, err := b.lab.Command(ctx, machine, b.Generator...)
	if err != nil {
		return nil, err
	}
	g, err := load.Start(cmd)
	if err == nil {
		b.generators[machine] = g
	}
	return g, err
}

// backends are the names of the machines with servers.
func backends() (out []string) {
	for i := 1; i <= lab.Backends; i++ {
		out = append(out, fmt.Sprintf("be%d", i))
	}
	return out
}

// address is a machine's.
func (b *bench) address(name string, v6 bool) (netip.Addr, error) {
	for _, c := range b.lab.Scenario().Clouds {
		for _, vm := range c.VMs {
			switch {
			case vm.Name != name:
			case v6:
				return vm.Addr6, nil
			default:
				return vm.Addr4, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("the lab has no machine %s", name)
}

// addresses are those of all backends, which the twins have, too.
func (b *bench) addresses(v6 bool) (out []netip.Addr, err error) {
	for _, name := range backends() {
		a, err := b.address(name, v6)
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// servers are where the backends at these addresses listen.
func servers(at []netip.Addr) (out []netip.AddrPort) {
	for _, a := range at {
		out = append(out, netip.AddrPortFrom(a, backend.HTTPPort))
	}
	return out
}

// vip is that of a kind of client which has a path.
func vip(from asking, path string, v6 bool) netip.AddrPort {
	last := byte(10*from.number + 1)
	if path == pathOVN {
		last++
	}
	a := netip.AddrFrom4([4]byte{10, 99, 0, last})
	if v6 {
		a = netip.AddrFrom16([16]byte{0xfd, 0, 0, 0x99, 15: last})
	}
	return netip.AddrPortFrom(a, vipPort)
}

func balancerName(from asking, path string) string { return from.name + "-" + path }

// addBalancers makes a load balancer for each path, with a VIP of each family.
func (b *bench) addBalancers(ctx context.Context, from asking) error {
	for _, path := range []string{pathEBPF, pathOVN} {
		name := balancerName(from, path)
		for _, v6 := range []bool{false, true} {
			at, err := b.addresses(v6)
			if err != nil {
				return err
			}
			var list []string
			for _, s := range servers(at) {
				list = append(list, intent.FormatEndpoint(s.Addr(), s.Port()))
			}
			if err := b.nb(ctx, "lb-add", name, vip(from, path, v6).String(), strings.Join(list, ","), "tcp"); err != nil {
				return err
			}
		}
		if path == pathOVN {
			if err := b.nb(ctx, "set", "Load_Balancer", name, "options:sluice-path=ovn"); err != nil {
				return err
			}
		}
		if err := b.nb(ctx, slices.Concat(from.hang, []string{name})...); err != nil {
			return err
		}
	}
	return b.nb(ctx, "--wait=hv", "sync")
}

// dropBalancers takes them away: a network that has load balancers is another one.
func (b *bench) dropBalancers(ctx context.Context, from asking) error {
	for _, path := range []string{pathEBPF, pathOVN} {
		if err := b.nb(ctx, "lb-del", balancerName(from, path)); err != nil {
			return err
		}
	}
	return b.nb(ctx, "--wait=hv", "sync")
}

func (b *bench) nb(ctx context.Context, args ...string) error {
	_, err := b.lab.NB(ctx, "a", args...)
	return err
}
