package lab

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// addPhantoms writes logical ports without a machine, and binds them.
func (l *Lab) addPhantoms(ctx context.Context, c Cloud, vms ...VM) error {
	if err := l.writePhantoms(ctx, c, vms...); err != nil {
		return err
	}
	return l.bindPhantoms(ctx, c, vms...)
}

// writePhantoms speaks JSON to the database: ovn-nbctl looks every name up in
// the whole table, which takes minutes for 20,000 ports.
func (l *Lab) writePhantoms(ctx context.Context, c Cloud, vms ...VM) error {
	for chunk := range slices.Chunk(vms, 2000) {
		var ops []string
		ports := map[string][]string{}
		for i, vm := range chunk {
			addresses := strings.TrimSpace(vm.mac() + addrWord(vm.Addr4) + addrWord(vm.Addr6))
			ops = append(ops, fmt.Sprintf(`{"op":"insert","table":"Logical_Switch_Port","uuid-name":"p%d","row":{"name":%q,"addresses":%q,"port_security":%q,"external_ids":["map",[["neutron:port_name",%q]]]}}`,
				i, vm.Name, addresses, addresses, vm.Name))
			network, err := c.network(vm.Tenant, vm.Network)
			if err != nil {
				return err
			}
			sw := network.Switch(vm.Tenant)
			ports[sw] = append(ports[sw], fmt.Sprintf(`["named-uuid","p%d"]`, i))
		}
		for sw, list := range ports {
			ops = append(ops, fmt.Sprintf(`{"op":"mutate","table":"Logical_Switch","where":[["name","==",%q]],"mutations":[["ports","insert",["set",[%s]]]]}`,
				sw, strings.Join(list, ",")))
		}
		if err := l.Transact(ctx, c.Name, "nb", nil, ops...); err != nil {
			return fmt.Errorf("phantom hosts of cloud %s: %w", c.Name, err)
		}
	}
	return nil
}

func addrWord(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return " " + a.String()
}

// bindPhantoms gives ports without a machine to a chassis that is only a row in
// the Southbound database: no ovn-controller releases them. ovn-sbctl would read
// all logical flows first.
func (l *Lab) bindPhantoms(ctx context.Context, c Cloud, vms ...VM) error {
	if len(vms) == 0 {
		return nil
	}
	// ovn-northd has to have made the Port_Bindings.
	if _, err := l.NB(ctx, c.Name, "--wait=sb", "sync"); err != nil {
		return err
	}
	chassis, err := l.phantomChassis(ctx, c)
	if err != nil {
		return err
	}
	var ports struct {
		Rows []struct {
			Name string    `json:"logical_port"`
			UUID [2]string `json:"_uuid"`
		}
	}
	if err := l.Transact(ctx, c.Name, "sb", &ports, `{"op":"select","table":"Port_Binding","where":[["type","==",""]],"columns":["logical_port","_uuid"]}`); err != nil {
		return err
	}
	rows := map[string]string{}
	for _, p := range ports.Rows {
		rows[p.Name] = p.UUID[1]
	}
	var ops []string
	for _, vm := range vms {
		ops = append(ops, fmt.Sprintf(`{"op":"update","table":"Port_Binding","where":[["_uuid","==",["uuid",%q]]],"row":{"chassis":["uuid",%q],"up":true}}`,
			rows[vm.Name], chassis))
	}
	if err := l.Transact(ctx, c.Name, "sb", nil, ops...); err != nil {
		return fmt.Errorf("binding phantom hosts of cloud %s: %w", c.Name, err)
	}
	return nil
}

// phantomChassis finds or makes the chassis of the phantoms.
func (l *Lab) phantomChassis(ctx context.Context, c Cloud) (string, error) {
	name := c.Name + "-phantom"
	var found struct {
		Rows []struct {
			UUID [2]string `json:"_uuid"`
		}
	}
	find := fmt.Sprintf(`{"op":"select","table":"Chassis","where":[["name","==",%q]],"columns":["_uuid"]}`, name)
	if err := l.Transact(ctx, c.Name, "sb", &found, find); err != nil {
		return "", err
	}
	if len(found.Rows) == 0 {
		err := l.Transact(ctx, c.Name, "sb", &found,
			fmt.Sprintf(`{"op":"insert","table":"Encap","uuid-name":"e","row":{"type":"geneve","ip":"172.31.255.254","chassis_name":%q}}`, name),
			fmt.Sprintf(`{"op":"insert","table":"Chassis","row":{"name":%q,"hostname":%q,"encaps":["named-uuid","e"]}}`, name, name), find)
		if err != nil {
			return "", fmt.Errorf("the chassis of phantom hosts: %w", err)
		}
	}
	return found.Rows[0].UUID[1], nil
}
