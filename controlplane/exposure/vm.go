package exposure

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// ports finds VMs' ports and virtual ports on provider networks.
func (t *translation) ports() {
	for _, p := range t.rows.VMs(t.own) {
		if _, there := t.rows.Localnet(p.Datapath); !there {
			continue // a tenant's network
		}
		s, ok := t.provider(p.Datapath, kindPort, p.LogicalPort)
		if !ok || !t.allowed(kindPort, p.LogicalPort, p) {
			continue
		}
		vm, ok := t.holder(kindPort, p.LogicalPort, p)
		if !ok {
			continue
		}
		hops := t.listed(kindPort, p)
		for _, a := range t.addresses(p, vm) {
			for _, n := range a.Prefixes {
				t.add(object{kind: kindPort, name: p.LogicalPort, addr: n.Addr(), mac: a.MAC, provider: s, gateway: intent.GatewayPort, port: p.LogicalPort, selves: a.Prefixes, hops: hops})
			}
		}
	}
}

// holder is the VM that has a port's addresses, if packets get to it: the port
// itself, or of a virtual port its virtual_parent, which ovn-controller sets with the
// chassis when that VM claims the address.
func (t *translation) holder(kind, name string, p ovn.PortBinding) (ovn.PortBinding, bool) {
	vm := p
	if p.Type == ovn.TypeVirtual {
		var ok bool
		if vm, ok = t.rows.Port(p.VirtualParent); !ok || vm.Type != ovn.TypeVIF || vm.Chassis != t.own {
			return vm, false // nobody has it, or another node's VM by now
		}
	}
	for _, port := range []string{p.LogicalPort, vm.LogicalPort} {
		if row, known := t.rows.SwitchPort(port); known && row.Disabled {
			t.withhold(kind, name, reason.PortDisabled, "port "+port+" is disabled (Logical_Switch_Port.enabled)")
			return vm, false
		}
	}
	// OVN has not made the port's flows: packets would be lost. The column says nothing
	// of virtual ports.
	if !vm.Up {
		t.withhold(kind, name, reason.PortDown, "port "+vm.LogicalPort+" is bound here and not up yet")
	}
	return vm, vm.Up
}

// addresses are those of a port, with the MAC that frames for them carry. Those of a
// virtual port are behind its VM's: OVN's routers send there, too.
func (t *translation) addresses(p, vm ovn.PortBinding) []ovn.PortAddresses {
	list, errs := ovn.ParseMACColumn(p.MAC)
	if err := errors.Join(errs...); err != nil {
		t.fail(kindPort, p.LogicalPort, reason.BadMAC, err)
	}
	if p.Type == ovn.TypeVirtual {
		return t.virtual(list, p, vm)
	}
	named := func(a ovn.PortAddresses) bool { return len(a.Prefixes) > 0 }
	if len(list) > 0 && !slices.ContainsFunc(list, named) {
		// Its addresses are not enforced ("MAC" and "unknown"): Neutron has them. What
		// follows the first are MACs that the VM may use beside its own.
		cidrs, err := ovn.ParseCIDRs(p.ExternalIDs[keyCIDRs])
		if err != nil {
			t.fail(kindPort, p.LogicalPort, reason.BadCIDRs, fmt.Errorf("external_ids:%s: %w", keyCIDRs, err))
		}
		list[0].Prefixes = cidrs
	}
	return list
}

// virtual are the addresses of a virtual port, or options:virtual-ip where it has none.
func (t *translation) virtual(list []ovn.PortAddresses, p, vm ovn.PortBinding) []ovn.PortAddresses {
	of, errs := ovn.ParseMACColumn(vm.MAC)
	if len(of) == 0 {
		t.fail(kindPort, p.LogicalPort, reason.BadMAC, fmt.Errorf("virtual_parent %s has no MAC: %w", vm.LogicalPort, errors.Join(errs...)))
		return nil
	}
	out := ovn.PortAddresses{MAC: of[0].MAC}
	for _, a := range list {
		out.Prefixes = append(out.Prefixes, a.Prefixes...)
	}
	if len(out.Prefixes) == 0 {
		vip, err := ovn.ParseCIDRs(p.Options[optionVirtualIP])
		if err != nil {
			t.fail(kindPort, p.LogicalPort, reason.BadMAC, fmt.Errorf("options:%s: %w", optionVirtualIP, err))
		}
		out.Prefixes = vip
	}
	return []ovn.PortAddresses{out}
}
