package lab

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// plugsAtOnce is how many VMs are plugged at a time: each takes a handful of processes, of
// which one waits for Open vSwitch.
const plugsAtOnce = 16

func (l *Lab) plugVMs(ctx context.Context, c Cloud) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(plugsAtOnce)
	for _, vm := range c.VMs {
		if !vm.Phantom {
			g.Go(func() error { return l.plugVM(gctx, c, vm) })
		}
	}
	return g.Wait()
}

// AddVM adds a VM to a running cloud and returns when its port is up.
func (l *Lab) AddVM(ctx context.Context, cloud string, vm VM) error {
	c, err := l.cloud(cloud)
	if err != nil {
		return err
	}
	if err := c.checkVM(vm); err != nil {
		return err
	}
	if _, err := l.Node(vm.Name); err == nil {
		return fmt.Errorf("there is already a node %q", vm.Name)
	}
	if err := l.updateCloud(cloud, func(c *Cloud) { c.VMs = append(c.VMs, vm) }); err != nil {
		return err
	}
	if vm.Phantom {
		return l.addPhantoms(ctx, c, vm)
	}
	var b ctlBatch
	if err := b.addVM(c, vm); err != nil {
		return err
	}
	if err := b.run(ctx, l.NB, cloud); err != nil {
		return err
	}
	if err := l.plugVM(ctx, c, vm); err != nil {
		return err
	}
	return l.waitPorts(ctx, c, vm.Name)
}

// DelVM unplugs a VM and deletes its logical port.
func (l *Lab) DelVM(ctx context.Context, name string) error {
	c, vm, err := l.findVM(name)
	if err != nil {
		return err
	}
	if !vm.Phantom {
		if err := l.unplugVM(ctx, c, vm); err != nil {
			return err
		}
	}
	if _, err := l.NB(ctx, c.Name, "lsp-del", name); err != nil {
		return err
	}
	return l.updateCloud(c.Name, func(c *Cloud) {
		c.VMs = slices.DeleteFunc(c.VMs, func(v VM) bool { return v.Name == name })
	})
}

// MoveVM unplugs a VM, and plugs it at another chassis with the same addresses.
func (l *Lab) MoveVM(ctx context.Context, name, chassis string) error {
	c, vm, err := l.findVM(name)
	if err != nil {
		return err
	}
	if err := l.unplugVM(ctx, c, vm); err != nil {
		return err
	}
	if vm, err = l.assign(c, vm, chassis); err != nil {
		return err
	}
	if err := l.plugVM(ctx, c, vm); err != nil {
		return err
	}
	return l.waitBound(ctx, c.Name, name, chassis, "chassis")
}

// assign records that a VM is on another chassis.
func (l *Lab) assign(c Cloud, vm VM, chassis string) (VM, error) {
	vm.Chassis = chassis
	if err := c.checkVM(vm); err != nil {
		return vm, err
	}
	return vm, l.updateCloud(c.Name, func(c *Cloud) {
		i := slices.IndexFunc(c.VMs, func(v VM) bool { return v.Name == vm.Name })
		c.VMs[i] = vm
	})
}

// waitBound waits until a column of a port, up, has a chassis.
func (l *Lab) waitBound(ctx context.Context, cloud, port, chassis, column string) error {
	return l.WaitFor(ctx, "port "+port+" on "+chassis, func() error {
		id, err := l.SB(ctx, cloud, "--bare", "--columns=_uuid", "find", "Chassis", "name="+chassis)
		if err != nil {
			return err
		}
		out, err := l.SB(ctx, cloud, "--bare", "--columns="+column, "find", "Port_Binding", "logical_port="+port, "up=true")
		if got := strings.TrimSpace(out); err == nil && (got == "" || got != strings.TrimSpace(id)) {
			err = fmt.Errorf("it is at %q", got)
		}
		return err
	})
}

// unplugVM removes the VM's namespace and its devices on the chassis.
func (l *Lab) unplugVM(ctx context.Context, c Cloud, vm VM) error {
	n, err := l.Node(vm.Name)
	if err != nil {
		return err
	}
	if err := l.unplugLinks(ctx, c, vm); err != nil {
		return err
	}
	if err := ipBatch(ctx, "", "netns del "+n.Netns+"\n"); err != nil {
		return err
	}
	l.mu.Lock()
	l.state.Nodes = slices.DeleteFunc(l.state.Nodes, func(m Node) bool { return m.Name == n.Name })
	l.mu.Unlock()
	return l.saveState()
}

// unplugLinks removes the VM's devices on the chassis.
func (l *Lab) unplugLinks(ctx context.Context, c Cloud, vm VM) error {
	host, err := l.Node(vm.Chassis)
	if err != nil {
		return err
	}
	id := vifID(vm.Name)
	// The tap goes with the link to the VM; the namespace may live on while a
	// command runs in it.
	script := fmt.Sprintf("set -e; ovs-vsctl --if-exists del-port br-int qvo%[1]s; ip link del tap%[1]s; ip link del qvb%[1]s; ip link del qbr%[1]s", id)
	if c.DirectPlug {
		script = fmt.Sprintf("set -e; ovs-vsctl --if-exists del-port br-int tap%[1]s; ip link del tap%[1]s", id)
	}
	return l.shell(ctx, host, script)
}

func (l *Lab) cloud(name string) (Cloud, error) {
	for _, c := range l.Scenario().Clouds {
		if c.Name == name {
			return c, nil
		}
	}
	return Cloud{}, fmt.Errorf("there is no cloud %q", name)
}

func (l *Lab) findVM(name string) (Cloud, VM, error) {
	for _, c := range l.Scenario().Clouds {
		for _, vm := range c.VMs {
			if vm.Name == name {
				return c, vm, nil
			}
		}
	}
	return Cloud{}, VM{}, fmt.Errorf("there is no VM %q", name)
}

// updateCloud changes the recorded scenario. Readers hold copies of the slices,
// so these are replaced, not written to.
func (l *Lab) updateCloud(name string, change func(*Cloud)) error {
	l.mu.Lock()
	clouds := slices.Clone(l.state.Scenario.Clouds)
	for i := range clouds {
		if clouds[i].Name == name {
			clouds[i].VMs = slices.Clone(clouds[i].VMs)
			change(&clouds[i])
		}
	}
	l.state.Scenario.Clouds = clouds
	l.mu.Unlock()
	return l.saveState()
}

// TapName is the name of a VM's tap on its chassis; its OVS port has prefix qvo.
func TapName(vm string) string { return "tap" + vifID(vm) }

func vifID(vm string) string {
	if len(vm) <= 11 {
		return vm
	}
	return shortID(vm)
}

// plugVM makes the VM's namespace and plugs it as the hybrid VIF driver does:
// tap - Linux bridge - veth pair - OVS port with iface-id.
func (l *Lab) plugVM(ctx context.Context, c Cloud, vm VM) error {
	n := Node{Name: vm.Name, Kind: KindVM, Cloud: c.Name, Netns: l.prefix + "-" + vm.Name, Dir: l.dir + "/" + vm.Name}
	// Recorded before it is made: an interrupt in between must not leave it behind.
	if err := l.recordNode(n); err != nil {
		return err
	}
	if err := ipBatch(ctx, "", "netns add "+n.Netns+"\n"); err != nil {
		return err
	}
	return errors.Join(l.plugLinks(ctx, c, n, vm, "eth0"), l.configureVM(ctx, c, n, vm))
}

// plugLinks makes a device of the VM, and plugs its other end at the VM's chassis.
func (l *Lab) plugLinks(ctx context.Context, c Cloud, n Node, vm VM, device string) error {
	host, err := l.Node(vm.Chassis)
	if err != nil {
		return err
	}
	network, err := c.network(vm.Tenant, vm.Network)
	if err != nil {
		return err
	}
	id, mtu := vifID(vm.Name), network.mtu()
	if err := ipBatch(ctx, "", fmt.Sprintf("link add %s netns %s address %s mtu %d type veth peer name tap%s mtu %d netns %s\n",
		device, n.Netns, vm.mac(), mtu, id, mtu, host.Netns)); err != nil {
		return err
	}
	if c.DirectPlug {
		return l.plug(ctx, c, host, vm, TapName(vm.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "link add qbr%s type bridge\nlink add qvb%s mtu %d type veth peer name qvo%s mtu %d\n", id, id, mtu, id, mtu)
	fmt.Fprintf(&b, "link set tap%s master qbr%s\nlink set qvb%s master qbr%s\n", id, id, id, id)
	if err := ipBatch(ctx, host.Netns, b.String()); err != nil {
		return err
	}
	return l.plug(ctx, c, host, vm, "qvo"+id, "qvb"+id, "qbr"+id, "tap"+id)
}

// plug sets a VM's links on its chassis up and adds the first of them to br-int.
func (l *Lab) plug(ctx context.Context, c Cloud, host Node, vm VM, links ...string) error {
	script := "set -e; "
	if len(links) > 1 {
		script += c.wholePackets(links[0], links[1])
	}
	for _, link := range links {
		// No IPv6 of the host's own in a tenant network.
		script += fmt.Sprintf("echo 1 >/proc/sys/net/ipv6/conf/%[1]s/disable_ipv6; ip link set %[1]s up; ", link)
	}
	return l.shell(ctx, host, script+fmt.Sprintf("ovs-vsctl add-port br-int %[1]s -- set Interface %[1]s external_ids:iface-id=%[2]s "+
		"external_ids:attached-mac='\"%[3]s\"' external_ids:iface-status=active", links[0], vm.Name, vm.mac()))
}

func (l *Lab) configureVM(ctx context.Context, c Cloud, n Node, vm VM) error {
	net, err := c.network(vm.Tenant, vm.Network)
	if err != nil {
		return err
	}
	// eth0 is there already and has its own settings. Without its link-local address a
	// machine asks for metadata from another one, to which no namespace has a route.
	if err := l.shell(ctx, n, quietIPv6+"echo 0 >/proc/sys/net/ipv6/conf/eth0/accept_dad"); err != nil {
		return err
	}
	b := "link set lo up\nlink set eth0 up\n"
	for _, a := range []struct {
		addr netip.Addr
		net  netip.Prefix
	}{{vm.Addr4, net.Subnet4}, {vm.Addr6, net.Subnet6}} {
		if a.addr.IsValid() {
			b += fmt.Sprintf("addr add %s/%d dev eth0%s\nroute add default via %s\n", a.addr, a.net.Bits(), nodad(a.addr), a.net.Masked().Addr().Next())
		}
	}
	if at := net.metadataAddr(); at.IsValid() && vm.Addr4.IsValid() {
		// Neutron's DHCP says so, as a classless static route.
		b += fmt.Sprintf("route add 169.254.169.254 via %s\n", at)
	}
	return ipBatch(ctx, n.Netns, b)
}

func (l *Lab) recordNode(n Node) error {
	l.mu.Lock()
	l.state.Nodes = append(l.state.Nodes, n)
	l.mu.Unlock()
	return l.saveState()
}

// waitCloud waits until every port is up, every gateway is scheduled, and the
// chassis have applied it.
func (l *Lab) waitCloud(ctx context.Context, c Cloud) error {
	var ports []string
	for _, vm := range c.VMs {
		if !vm.Phantom {
			ports = append(ports, vm.Name)
		}
	}
	if err := l.waitPorts(ctx, c, ports...); err != nil {
		return err
	}
	err := l.waitAtMost(ctx, c.patience(), "gateways of cloud "+c.Name, func() error {
		var rows struct {
			Rows []struct{ Logical_port string }
		}
		err := l.Transact(ctx, c.Name, "sb", &rows,
			`{"op":"select","table":"Port_Binding","where":[["type","==","chassisredirect"],["chassis","==",["set",[]]]],"columns":["logical_port"]}`)
		if err == nil && len(rows.Rows) > 0 {
			err = fmt.Errorf("%d are not scheduled, for example %s", len(rows.Rows), rows.Rows[0].Logical_port)
		}
		return err
	})
	if err != nil {
		return err
	}
	_, err = l.NB(ctx, c.Name, "--wait=hv", "sync")
	return err
}

// waitPorts asks for the rows of these ports alone: ovn-nbctl would read the
// whole table each time.
func (l *Lab) waitPorts(ctx context.Context, c Cloud, ports ...string) error {
	return l.waitAtMost(ctx, c.patience(), "ports of cloud "+c.Name, func() error {
		for _, p := range ports {
			var up struct{ Rows []struct{ Name string } }
			err := l.Transact(ctx, c.Name, "nb", &up,
				fmt.Sprintf(`{"op":"select","table":"Logical_Switch_Port","where":[["name","==",%q],["up","==",true]],"columns":["name"]}`, p))
			if err != nil {
				return err
			}
			if len(up.Rows) == 0 {
				return fmt.Errorf("port %s is not up", p)
			}
		}
		return nil
	})
}

// patience is how long a cloud of this size may take to settle.
func (c Cloud) patience() time.Duration {
	return Patience() + time.Duration(len(c.VMs))*10*time.Millisecond
}

// nodad makes an IPv6 address usable at once.
func nodad(a netip.Addr) string {
	if a.Is6() {
		return " nodad"
	}
	return ""
}
