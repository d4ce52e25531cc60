package demo

import (
	"context"
	"fmt"
	"strings"

	"github.com/ovn-sluice/sluice/test/backend"
)

// apiBackends is how many backends the load balancers have that the openstack command makes.
const apiBackends = 2

// api has the openstack command make load balancers, and asks them.
func (t *tour) api(ctx context.Context) error {
	t.head("Load balancers by the openstack command")
	t.say("Two replicas of sluice-controller answer Octavia's API on the node api. They keep nothing: OVN Northbound of cloud A is their only store.")
	if err := t.lab.StartAPI(ctx); err != nil {
		return err
	}
	for _, f := range []struct{ name, subnet, backend string }{{"shop4", "red-net-4", "10.10.0.%d"}, {"shop6", "red-net-6", "fd00:10::%d"}} {
		if err := t.addShop(ctx, f.name, f.subnet, f.backend); err != nil {
			return err
		}
	}
	if _, err := t.show(ctx, "api", "openstack", "loadbalancer", "list", "-c", "name", "-c", "vip_address", "-c", "provisioning_status", "-c", "operating_status"); err != nil {
		return err
	}
	for _, name := range []string{"shop4", "shop6"} {
		out, err := t.lab.Exec(ctx, "api", "openstack", "loadbalancer", "show", name, "-f", "value", "-c", "vip_address")
		if err != nil {
			return err
		}
		vip := strings.TrimSpace(out)
		if strings.Contains(vip, ":") {
			vip = "[" + vip + "]"
		}
		for _, client := range []string{"c-fabric", "c-same"} {
			if err := t.lab.WaitFor(ctx, vip+" answers "+client, func() error {
				_, err := t.connect(ctx, client, vip, 1)
				return err
			}); err != nil {
				return err
			}
			counts, err := t.connect(ctx, client, vip, connections)
			if err != nil {
				return err
			}
			t.say("%d connections of %s to %s, %s: %s", connections, client, name, vip, tally(counts))
			if len(counts) != apiBackends {
				return fmt.Errorf("%d of %d backends were asked", len(counts), apiBackends)
			}
		}
	}
	_, err := t.show(ctx, "a1", "sluicectl", "lb", "list")
	return err
}

// addShop makes a load balancer of the backends be2 and be3.
func (t *tour) addShop(ctx context.Context, name, subnet, address string) error {
	lines := []string{
		"create --name " + name + " --vip-subnet-id " + subnet,
		"pool create --name " + name + " --loadbalancer " + name + " --protocol TCP --lb-algorithm SOURCE_IP_PORT",
	}
	for i := range apiBackends {
		lines = append(lines, fmt.Sprintf("member create --address "+address+" --subnet-id %s --protocol-port %d %s", 22+i, subnet, backend.HTTPPort, name))
	}
	for _, line := range append(lines, "listener create --protocol TCP --protocol-port 80 --default-pool "+name+" "+name) {
		fmt.Fprintf(t.out, "api$ openstack loadbalancer %s\n", line)
		if _, err := t.lab.Exec(ctx, "api", append([]string{"openstack", "loadbalancer"}, strings.Fields(line)...)...); err != nil {
			return err
		}
	}
	return nil
}
