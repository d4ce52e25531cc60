package openstack

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia/network"
	"github.com/ovn-sluice/sluice/controlplane/octavia/rowform"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// ownerKey marks the ports that the controller makes.
const ownerKey = "sluice:owner"

// made is the UUID that the test gives a row or object of Neutron's, by its placeholder.
func made(name string) string {
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(strings.Trim(name, "<>"))).String()
}

// filled is a row without placeholders: those that are new are objects of Neutron's.
func (b bindings) filled(r row) row {
	var out row
	raw := jsonOf(r)
	for {
		text, unbound := b.fill(raw)
		if len(unbound) == 0 {
			_ = json.Unmarshal([]byte(text), &out) // it was a row before
			return out
		}
		for _, name := range unbound {
			name = strings.Trim(name, "<>")
			if b[name] = made(name); strings.HasPrefix(name, "mac-") {
				b[name] = "02:00:00:00:00:01"
			}
		}
	}
}

// jsonOf is a value as JSON, with brackets as they are.
func jsonOf(v any) string {
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(out.String())
}

// neutron writes what Neutron wrote.
func (b bindings) neutron(tx *northbound.Tx, r record) {
	for _, ls := range r.Neutron[nb.LogicalSwitchTable] {
		if of := ofNeutron.FindStringSubmatch(ls.text("name")); of != nil {
			b[of[1]] = made(ls.text("_uuid"))
		}
	}
	rows := map[string][]row{}
	for _, table := range []string{nb.NATTable, nb.LogicalRouterPortTable, nb.LogicalSwitchPortTable, nb.LogicalRouterTable, nb.LogicalSwitchTable} {
		for _, row := range r.Neutron[table] {
			rows[table] = append(rows[table], b.filled(row))
		}
	}
	putPorts(tx, rows)
	for _, r := range rows[nb.LogicalRouterTable] {
		putRouter(tx, r)
	}
	for _, r := range rows[nb.LogicalSwitchTable] {
		putSwitch(tx, r, rows)
	}
	for _, list := range r.Gone {
		for _, gone := range list {
			row, _ := gone.(map[string]any)
			tx.Delete(&nb.LogicalRouterPort{UUID: made(fmt.Sprint(row["_uuid"]))})
			tx.Delete(&nb.LogicalSwitchPort{UUID: made(fmt.Sprint(row["_uuid"]))})
			tx.Delete(&nb.NAT{UUID: made(fmt.Sprint(row["_uuid"]))})
		}
	}
}

// putPorts writes what routers and switches refer to.
func putPorts(tx *northbound.Tx, rows map[string][]row) {
	for _, r := range rows[nb.NATTable] {
		next := &nb.NAT{UUID: r.text("_uuid"), Type: r.text("type"), ExternalIP: r.text("external_ip"), LogicalIP: r.text("logical_ip")}
		if port := r.text("logical_port"); port != "" {
			next.LogicalPort = &port
		}
		tx.Insert(next)
	}
	for _, r := range rows[nb.LogicalRouterPortTable] {
		next := &nb.LogicalRouterPort{UUID: r.text("_uuid"), Name: r.text("name"), MAC: r.text("mac"), Networks: r.set("networks"), ExternalIDs: r.pairs("external_ids")}
		if _, there := northbound.Get[*nb.LogicalRouterPort](tx, next.UUID); there {
			tx.Update(next, "networks", "external_ids")
		} else {
			tx.Insert(next)
		}
	}
	for _, r := range rows[nb.LogicalSwitchPortTable] {
		next := &nb.LogicalSwitchPort{UUID: r.text("_uuid"), Name: r.text("name"), Type: r.text("type"), Addresses: r.set("addresses"),
			Options: r.pairs("options"), ExternalIDs: r.pairs("external_ids")}
		if _, there := northbound.Get[*nb.LogicalSwitchPort](tx, next.UUID); there {
			tx.Update(next, "addresses", "options", "external_ids")
		} else {
			tx.Insert(next)
		}
	}
}

func putRouter(tx *northbound.Tx, r row) {
	next := &nb.LogicalRouter{UUID: r.text("_uuid"), Name: r.text("name"), ExternalIDs: r.pairs("external_ids")}
	for _, id := range r.set("ports") {
		if _, there := northbound.Get[*nb.LogicalRouterPort](tx, id); there {
			next.Ports = append(next.Ports, id)
		}
	}
	for _, id := range r.set("nat") {
		if _, there := northbound.Get[*nb.NAT](tx, id); there {
			next.Nat = append(next.Nat, id)
		}
	}
	if _, there := northbound.Get[*nb.LogicalRouter](tx, next.UUID); there {
		tx.Update(next, "ports", "nat")
	} else {
		tx.Insert(next)
	}
}

// putSwitch writes the switch of a network. Its ports that Neutron did not make stay. The records lack the
// port to a physical network.
func putSwitch(tx *northbound.Tx, r row, rows map[string][]row) {
	next := &nb.LogicalSwitch{UUID: r.text("_uuid"), Name: r.text("name"), ExternalIDs: r.pairs("external_ids")}
	for _, id := range r.set("ports") {
		if _, there := northbound.Get[*nb.LogicalSwitchPort](tx, id); there {
			next.Ports = append(next.Ports, id)
		}
	}
	if before, there := northbound.Get[*nb.LogicalSwitch](tx, next.UUID, "ports"); there {
		for _, id := range before.Ports {
			if lsp, ok := northbound.Peek[*nb.LogicalSwitchPort](tx, id); ok && lsp.ExternalIDs[ownerKey] != "" {
				next.Ports = append(next.Ports, id)
			}
		}
		tx.Update(next, "ports")
		return
	}
	if kind := next.ExternalIDs["neutron:provnet-network-type"]; kind == "vlan" || kind == "flat" {
		next.Ports = append(next.Ports, made(next.UUID))
		tx.Insert(&nb.LogicalSwitchPort{UUID: made(next.UUID), Name: "provnet-" + next.Name, Type: "localnet", Options: map[string]string{"network_name": "physnet1"}})
	}
	next.OtherConfig = unrouted(next.Name, rows)
	tx.Insert(next)
}

// unrouted is the configuration of a switch whose subnet is at no router: Neutron writes nothing else that
// has both. The port of metadata has an address in each subnet.
func unrouted(name string, rows map[string][]row) map[string]string {
	routed := map[string]bool{}
	for _, r := range rows[nb.LogicalRouterPortTable] {
		for _, text := range r.set("networks") {
			if p, err := netip.ParsePrefix(text); err == nil {
				routed[p.Masked().String()] = true
			}
		}
	}
	out := map[string]string{}
	for _, r := range rows[nb.LogicalSwitchPortTable] {
		ids := r.pairs("external_ids")
		if r.text("type") != "localport" || ids["neutron:network_name"] != name {
			continue
		}
		for _, text := range strings.Fields(ids["neutron:cidrs"]) {
			if p, err := netip.ParsePrefix(text); err == nil && !routed[p.Masked().String()] {
				out["subnet"] = p.Masked().String()
			}
		}
	}
	return out
}

// subnets binds the subnets of a line that no row had with its network.
func (b bindings) subnets(s *northbound.Snapshot, r record) {
	for _, options := range r.Neutron[nb.DHCPOptionsTable] {
		for _, n := range network.All(s) {
			for _, subnet := range network.Subnets(s, n) {
				name := strings.Trim(options.pairs("external_ids")["subnet_id"], "<>")
				if subnet.CIDR.String() == options.text("cidr") && b[name] == "" {
					b[name] = subnet.ID
				}
			}
		}
	}
}

// rowsOf are the rows that the API writes, by table and UUID, as records have them. What the API keeps under
// keys of its own is left out, and so is what Neutron writes of a VIP's port beside its address and name.
func rowsOf(s *northbound.Snapshot) map[string]map[string]row {
	out := map[string]map[string]row{nb.LoadBalancerTable: {}, nb.LogicalSwitchTable: {}, nb.LogicalRouterTable: {}, nb.LogicalSwitchPortTable: {}}
	for lb := range northbound.All[*nb.LoadBalancer](s) {
		if rowform.Is(lb) {
			ids := maps.Clone(lb.ExternalIDs)
			maps.DeleteFunc(ids, ofOurs)
			out[nb.LoadBalancerTable][lb.UUID] = tidy(row{"name": lb.Name, "protocol": lb.Protocol, "external_ids": ids, "options": lb.Options, "vips": lb.Vips,
				"selection_fields": lb.SelectionFields, "health_check": lb.HealthCheck, "ip_port_mappings": lb.IPPortMappings})
		}
	}
	for ls := range northbound.All[*nb.LogicalSwitch](s) {
		out[nb.LogicalSwitchTable][ls.UUID] = tidy(row{"name": ls.Name, "load_balancer": ls.LoadBalancer})
	}
	for lr := range northbound.All[*nb.LogicalRouter](s) {
		out[nb.LogicalRouterTable][lr.UUID] = tidy(row{"name": lr.Name, "load_balancer": lr.LoadBalancer})
	}
	for lsp := range northbound.All[*nb.LogicalSwitchPort](s) {
		if lsp.ExternalIDs[ownerKey] != "" {
			ids := maps.Clone(lsp.ExternalIDs)
			maps.DeleteFunc(ids, ofOurs)
			out[nb.LogicalSwitchPortTable][lsp.UUID] = tidy(row{"name": lsp.Name, "enabled": lsp.Enabled, "addresses": lsp.Addresses, "external_ids": ids})
		}
	}
	return out
}

func ofOurs(key, _ string) bool { return strings.HasPrefix(key, "sluice:") }

// tidy is a row as JSON has it, without columns that have no value.
func tidy(r row) row {
	var out row
	_ = json.Unmarshal([]byte(jsonOf(r)), &out) // rows always marshal
	maps.DeleteFunc(out, func(_ string, v any) bool {
		switch v := v.(type) {
		case nil:
			return true
		case []any:
			return len(v) == 0
		case map[string]any:
			return len(v) == 0
		}
		return false
	})
	return out
}

// rows compares the rows of a dump with those that there are, and finds changes since before that it does not have.
func (c *comparison) rows(r record, before, now map[string]map[string]row) {
	listed := map[string]bool{}
	for _, table := range []string{nb.LoadBalancerTable, nb.LogicalSwitchTable, nb.LogicalRouterTable, nb.LogicalSwitchPortTable} {
		for _, want := range r.Rows[table] {
			if c.served(table, want) {
				listed[c.row(table, want, now[table])] = true
			}
		}
	}
	for _, name := range r.Gone[nb.LoadBalancerTable] {
		if id := c.bindings[strings.Trim(fmt.Sprint(name), "<>")]; now[nb.LoadBalancerTable][id] != nil {
			c.differs("gone." + nb.LoadBalancerTable)
		} else {
			listed[id] = true
		}
	}
	for table, rows := range now {
		for id, r := range rows {
			if !listed[id] && jsonOf(r) != jsonOf(before[table][id]) {
				c.differs("unlisted." + table)
			}
		}
	}
	for _, port := range now[nb.LogicalSwitchPortTable] {
		of := anyID.FindString(port.pairs("external_ids")["neutron:port_name"])
		if !slices.ContainsFunc(slices.Collect(maps.Values(now[nb.LoadBalancerTable])), func(lb row) bool { return lb["name"] == of }) {
			c.differs("left." + nb.LogicalSwitchPortTable)
		}
	}
	for id := range before[nb.LoadBalancerTable] {
		if now[nb.LoadBalancerTable][id] == nil && !listed[id] {
			c.differs("unlisted.gone." + nb.LoadBalancerTable)
		}
	}
}

// served tells whether a row is of an object that was made here.
func (c *comparison) served(table string, want row) bool {
	name := want.text("name")
	if table == nb.LogicalSwitchPortTable {
		name = strings.TrimPrefix(want.pairs("external_ids")["neutron:port_name"], "ovn-lb-vip-")
	}
	_, unbound := c.fill(name)
	return len(unbound) == 0
}

// row compares a row with the one of the same name and protocol, and returns that one's UUID.
func (c *comparison) row(table string, want row, rows map[string]row) string {
	name, _ := c.fill(want.text("name"))
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		r := rows[id]
		if r["name"] != name || table == nb.LoadBalancerTable && r["protocol"] != want["protocol"] {
			continue
		}
		c.bindings[strings.Trim(want.text("_uuid"), "<>")] = id
		wanted := maps.Clone(want)
		delete(wanted, "_uuid")
		for _, column := range []string{"load_balancer", "selection_fields", "health_check", "addresses"} {
			if list := c.made(want.set(column)); len(list) > 0 {
				wanted[column] = list
			} else {
				delete(wanted, column)
			}
		}
		c.object("."+table, wanted, r)
		return id
	}
	c.differs(table)
	return ""
}

// made are the members of a set that stand for something here.
func (c *comparison) made(members []string) []any {
	out := []any{}
	for _, m := range members {
		if text, unbound := c.fill(m); len(unbound) == 0 {
			out = append(out, text)
		}
	}
	return out
}
