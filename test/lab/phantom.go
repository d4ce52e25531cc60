package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// addPhantoms writes logical ports without a machine, and binds them. It speaks
// JSON to the database: ovn-nbctl looks every name up in the whole table, which
// takes minutes for 20,000 ports.
func (l *Lab) addPhantoms(ctx context.Context, c Cloud, vms ...VM) error {
	for chunk := range slices.Chunk(vms, 200) {
		ops := []string{`"OVN_Northbound"`}
		for i, vm := range chunk {
			addresses := strings.TrimSpace(vm.mac() + addrWord(vm.Addr4) + addrWord(vm.Addr6))
			ops = append(ops,
				fmt.Sprintf(`{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p%d","row":{"name":%q,"addresses":%q,"port_security":%q,"external_ids":["map",[["neutron:port_name",%q]]]}}`,
					i, vm.Name, addresses, addresses, vm.Name),
				fmt.Sprintf(`{"op":"mutate","table":"Logical_Switch","where":[["name","==",%q]],"mutations":[["ports","insert",["named-uuid","p%d"]]]}`,
					SwitchName(vm.Tenant, vm.Network), i))
		}
		if err := l.transact(ctx, c, "nb", ops); err != nil {
			return fmt.Errorf("phantom hosts of cloud %s: %w", c.Name, err)
		}
	}
	return l.bindPhantoms(ctx, c, vms...)
}

func addrWord(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return " " + a.String()
}

// transact runs one OVSDB transaction (RFC 7047 section 4.1.3).
func (l *Lab) transact(ctx context.Context, c Cloud, db string, ops []string) error {
	reply, err := l.Exec(ctx, c.central(), "ovsdb-client", "transact", l.dbSocket(c.Name, db), "["+strings.Join(ops, ",")+"]")
	if err == nil && strings.Contains(reply, `"error"`) {
		err = fmt.Errorf("%s", tail(reply, 500))
	}
	return err
}

// bindPhantoms gives ports without a machine to a chassis that is only a row in
// the Southbound database: no ovn-controller releases them.
func (l *Lab) bindPhantoms(ctx context.Context, c Cloud, vms ...VM) error {
	if len(vms) == 0 {
		return nil
	}
	// ovn-northd has to have made the Port_Bindings.
	if _, err := l.NB(ctx, c.Name, "--wait=sb", "sync"); err != nil {
		return err
	}
	if _, err := l.SB(ctx, c.Name, "--may-exist", "chassis-add", phantomChassis(c), "geneve", "172.31.255.254"); err != nil {
		return err
	}
	return l.bindRows(ctx, c, vms)
}

// bindRows sets Port_Binding.chassis row by row through ovsdb-client: ovn-sbctl
// lsp-bind reads the whole table for each port, which takes minutes for 20,000.
func (l *Lab) bindRows(ctx context.Context, c Cloud, vms []VM) error {
	chassis, err := l.SB(ctx, c.Name, "--bare", "--columns=_uuid", "find", "Chassis", "name="+phantomChassis(c))
	if err != nil {
		return err
	}
	out, err := l.SB(ctx, c.Name, "--bare", "--no-headings", "--format=csv", "--columns=logical_port,_uuid", "list", "Port_Binding")
	if err != nil {
		return err
	}
	rows := map[string]string{}
	for line := range strings.Lines(out) {
		if port, id, ok := strings.Cut(strings.TrimSpace(line), ","); ok {
			rows[port] = id
		}
	}
	for chunk := range slices.Chunk(vms, 400) {
		ops := []string{`"OVN_Southbound"`}
		for _, vm := range chunk {
			ops = append(ops, fmt.Sprintf(`{"op":"update","table":"Port_Binding","where":[["_uuid","==",["uuid",%q]]],"row":{"chassis":["uuid",%q],"up":true}}`,
				rows[vm.Name], strings.TrimSpace(chassis)))
		}
		if err := l.transact(ctx, c, "sb", ops); err != nil {
			return fmt.Errorf("binding phantom hosts of cloud %s: %w", c.Name, err)
		}
	}
	return nil
}
