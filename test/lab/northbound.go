package lab

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
)

// RouterName and the other names of a tenant's rows are the same in each cloud.
func RouterName(tenant string) string { return tenant + "-router" }

// SwitchName is the logical switch of a tenant network, or without a tenant that of
// a provider network.
func SwitchName(tenant, network string) string {
	if tenant == "" {
		return network
	}
	return tenant + "-" + network
}

// GatewayPort is the router's gateway port (Logical_Router_Port); the
// chassisredirect row is called cr- plus this.
func GatewayPort(tenant string) string { return "lrp-" + tenant + "-gw" }

// GatewaySwitchPort is its peer on the provider switch, which carries the
// neutron_bgpvpn annotation.
func GatewaySwitchPort(tenant string) string { return "lsp-" + tenant + "-gw" }

// InterfacePort is the router's port in a tenant network.
func InterfacePort(tenant, network string) string { return "lrp-" + tenant + "-" + network }

// InterfaceSwitchPort is its peer on the tenant switch, which carries the
// annotation.
func InterfaceSwitchPort(tenant, network string) string { return "lsp-" + tenant + "-" + network }

// LocalnetPort is the localnet port of a provider network.
func LocalnetPort(provider string) string { return "provnet-" + provider }

// macOf derives a stable, locally administered address from a name.
func macOf(name string) string {
	h := sha256.Sum256([]byte(name))
	return fmt.Sprintf("02:%02x:%02x:%02x:%02x:%02x", h[0], h[1], h[2], h[3], h[4])
}

func shortID(name string) string {
	h := sha256.Sum256([]byte(name))
	return hex.EncodeToString(h[:])[:11]
}

// ctlBatch collects database commands; each is one `--` clause.
type ctlBatch struct{ cmds [][]string }

func (b *ctlBatch) add(args ...string) { b.cmds = append(b.cmds, args) }

// batchBytes bounds one command line well below the kernel's limit.
const batchBytes = 64 << 10

func (b *ctlBatch) run(ctx context.Context, ctl func(context.Context, string, ...string) (string, error), cloud string) error {
	var args []string
	size := 0
	flush := func() error {
		if len(args) == 0 {
			return nil
		}
		_, err := ctl(ctx, cloud, args...)
		args, size = nil, 0
		return err
	}
	for _, c := range b.cmds {
		if size > batchBytes {
			if err := flush(); err != nil {
				return err
			}
		}
		if len(args) > 0 {
			args = append(args, "--")
		}
		args = append(args, c...)
		for _, a := range c {
			size += len(a) + 1
		}
	}
	return flush()
}

// writeNorthbound writes the cloud's logical network as Neutron would.
func (l *Lab) writeNorthbound(ctx context.Context, c Cloud) error {
	var b ctlBatch
	for _, p := range c.Providers {
		b.addProvider(p)
	}
	for i, t := range c.Tenants {
		if err := b.addTenant(c, t, i); err != nil {
			return err
		}
	}
	var phantoms []VM
	for _, vm := range c.VMs {
		if vm.Phantom {
			phantoms = append(phantoms, vm)
			continue
		}
		if err := b.addVM(c, vm); err != nil {
			return err
		}
	}
	if len(phantoms) == 0 {
		return b.run(ctx, l.NB, c.Name)
	}
	// ovn-northd computes everything again after each transaction.
	if err := l.northd(ctx, c, "pause"); err != nil {
		return err
	}
	if err := errors.Join(b.run(ctx, l.NB, c.Name), l.writePhantoms(ctx, c, phantoms...), l.northd(ctx, c, "resume")); err != nil {
		return err
	}
	return l.bindPhantoms(ctx, c, phantoms...)
}

func (l *Lab) northd(ctx context.Context, c Cloud, command string) error {
	n, err := l.Node(c.central())
	if err == nil {
		_, err = l.Exec(ctx, n.Name, "ovs-appctl", "-t", filepath.Join(n.Dir, "northd.ctl"), command)
	}
	return err
}

func (b *ctlBatch) addProvider(p Provider) {
	port := LocalnetPort(p.Name)
	b.add("ls-add", p.Name)
	b.add("lsp-add", p.Name, port)
	b.add("lsp-set-type", port, "localnet")
	b.add("lsp-set-addresses", port, "unknown")
	b.add("lsp-set-options", port, "network_name="+p.Physnet)
	if p.VLAN != 0 {
		b.add("set", "Logical_Switch_Port", port, fmt.Sprintf("tag=%d", p.VLAN))
	}
}

func (b *ctlBatch) addTenant(c Cloud, t Tenant, index int) error {
	if !t.NoRouter {
		router := RouterName(t.Name)
		b.add("lr-add", router)
		// Without it OVN drops packets to neighbours that it has not yet asked for.
		b.add("set", "Logical_Router", router, "options:dynamic_neigh_routers=true", "options:always_learn_from_arp_request=false")
	}
	for _, n := range t.Networks {
		b.addNetwork(t, n)
	}
	if t.Provider == "" {
		return nil
	}
	p, err := c.provider(t.Provider)
	if err != nil {
		return err
	}
	return b.addGateway(c, t, p, index)
}

func (b *ctlBatch) addNetwork(t Tenant, n Network) {
	sw, lrp, lsp := n.Switch(t.Name), InterfacePort(t.Name, n.Name), InterfaceSwitchPort(t.Name, n.Name)
	b.add("ls-add", sw)
	if n.Metadata {
		b.addMetadataPort(t, n)
	}
	if t.NoRouter {
		return
	}
	args := []string{"lrp-add", RouterName(t.Name), lrp, macOf(lrp)}
	for _, s := range []netip.Prefix{n.Subnet4, n.Subnet6} {
		if s.IsValid() {
			args = append(args, fmt.Sprintf("%s/%d", s.Masked().Addr().Next(), s.Bits()))
		}
	}
	b.add(args...)
	b.add("lsp-add", sw, lsp)
	b.add("lsp-set-type", lsp, "router")
	b.add("lsp-set-addresses", lsp, "router")
	b.add("lsp-set-options", lsp, "router-port="+lrp)
	if !n.Unexposed {
		b.annotate(lsp, t)
	}
}

func (b *ctlBatch) annotate(lsp string, t Tenant) {
	if t.VNI != 0 {
		b.add("set", "Logical_Switch_Port", lsp,
			fmt.Sprintf(`external_ids:neutron_bgpvpn\:vni=%d`, t.VNI), fmt.Sprintf(`external_ids:neutron_bgpvpn\:as=%d`, t.AS))
	}
}

// GatewayAddrs are the addresses of the gateway port of the index-th tenant of
// a cloud on its provider network.
func (p Provider) GatewayAddrs(index int) (v4, v6 netip.Addr) {
	// The first ten addresses are the network's own: next hop and routers.
	return nth(p.Subnet4, index+11), nth(p.Subnet6, index+11)
}

func nth(p netip.Prefix, n int) netip.Addr {
	if !p.IsValid() {
		return netip.Addr{}
	}
	b := p.Masked().Addr().AsSlice()
	for i := len(b) - 1; n > 0; i-- {
		n += int(b[i])
		b[i] = byte(n)
		n >>= 8
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

func (b *ctlBatch) addGateway(c Cloud, t Tenant, p Provider, index int) error {
	router, lrp, lsp := RouterName(t.Name), GatewayPort(t.Name), GatewaySwitchPort(t.Name)
	a4, a6 := p.GatewayAddrs(index)
	h4, h6 := p.NextHops()
	args := []string{"lrp-add", router, lrp, macOf(c.Name + lrp)}
	var routes [][]string
	if a4.IsValid() {
		args = append(args, fmt.Sprintf("%s/%d", a4, p.Subnet4.Bits()))
		routes = append(routes, []string{"lr-route-add", router, "0.0.0.0/0", h4.String(), lrp})
	}
	if a6.IsValid() {
		args = append(args, fmt.Sprintf("%s/%d", a6, p.Subnet6.Bits()))
		routes = append(routes, []string{"lr-route-add", router, "::/0", h6.String(), lrp})
	}
	b.add(args...)
	b.add("lsp-add", p.Name, lsp)
	b.add("lsp-set-type", lsp, "router")
	b.add("lsp-set-addresses", lsp, "router")
	b.add("lsp-set-options", lsp, "router-port="+lrp)
	b.annotate(lsp, t)
	for _, r := range routes {
		b.add(r...)
	}
	for _, ch := range c.Chassis {
		if ch.Priority > 0 && (t.GatewayChassis == "" || t.GatewayChassis == ch.Name) {
			b.add("lrp-set-gateway-chassis", lrp, ch.Name, fmt.Sprint(ch.Priority))
		}
	}
	for _, n := range t.Networks {
		if t.SNAT && n.Unexposed && a4.IsValid() && n.Subnet4.IsValid() {
			b.add("lr-nat-add", router, "snat", a4.String(), n.Subnet4.String())
		}
	}
	return nil
}

func (b *ctlBatch) addVM(c Cloud, vm VM) error {
	n, err := c.network(vm.Tenant, vm.Network)
	if err != nil {
		return err
	}
	words, cidrs := []string{vm.mac()}, []string{}
	for _, a := range []struct {
		addr netip.Addr
		net  netip.Prefix
	}{{vm.Addr4, n.Subnet4}, {vm.Addr6, n.Subnet6}} {
		if a.addr.IsValid() {
			words = append(words, a.addr.String())
			cidrs = append(cidrs, fmt.Sprintf("%s/%d", a.addr, a.net.Bits()))
		}
	}
	addresses := strings.Join(words, " ")
	b.add("lsp-add", n.Switch(vm.Tenant), vm.Name)
	b.add("lsp-set-addresses", vm.Name, addresses)
	b.add("lsp-set-port-security", vm.Name, addresses)
	b.add("set", "Logical_Switch_Port", vm.Name, `external_ids:neutron\:cidrs="`+strings.Join(cidrs, " ")+`"`,
		`external_ids:neutron\:port_name=`+vm.Name)
	b.addOwner(vm, n)
	return nil
}

func (vm VM) mac() string {
	if vm.MAC != "" {
		return vm.MAC
	}
	return macOf(vm.Name)
}
