package exposure

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// virtual is a port of Neutron's whose addresses are allowed address pairs of the
// VMs vm and far, with one of them, or nobody, having claimed them.
func (c cloud) virtual(parent string, chassis ovn.UUID, mac ...string) {
	p := pb("vip", ovn.TypeVirtual, "public", chassis, mac...)
	p.Up, p.VirtualParent = false, parent
	p.Options = map[string]string{"virtual-ip": "172.24.0.80"}
	p.ExternalIDs = map[string]string{keyCIDRs: "172.24.0.80/16 2001:db8:24::80/64"}
	c.put(p)
}

// disabled is what Northbound has of a port with admin_state_up=False.
func (c cloud) disabled(port string) {
	c.put(ovn.LogicalSwitchPort{UUID: ovn.UUID("lsp-" + port), Name: port, Disabled: true})
}

// What is exposed of VMs' ports, with rows as Neutron writes them.
func TestVMs(t *testing.T) {
	const vm, vip = "br-ex/02:00:00:00:01:01", "02:00:00:00:09:09 172.24.0.80 2001:db8:24::80"
	ports := []string{"172.24.0.50 " + vm, "2001:db8:24::50 " + vm}
	both := []string{ports[0], "172.24.0.80 " + vm, ports[1], "2001:db8:24::80 " + vm}
	mac := func(column ...string) func(cloud) {
		return func(c cloud) { c.edit("vm", func(p *ovn.PortBinding) { p.MAC = column }) }
	}
	for name, row := range map[string]struct {
		config func(*Config)
		edit   func(cloud)
		want   []string
		told   []string
	}{
		"an address pair behind another MAC": {edit: mac("02:00:00:00:01:01 172.24.0.50 2001:db8:24::50", "02:00:00:00:0a:0a"), want: ports},
		"without port security":              {edit: mac("02:00:00:00:01:01 172.24.0.50 2001:db8:24::50", "unknown"), want: ports},
		"its addresses are in neutron:cidrs": {edit: func(c cloud) {
			c.edit("vm", func(p *ovn.PortBinding) {
				p.MAC, p.ExternalIDs[keyCIDRs] = []string{"02:00:00:00:01:01", "02:00:00:00:0a:0a", "unknown"}, "172.24.0.50/16 2001:db8:24::50/64"
			})
		}, want: ports},
		"any address":             {edit: mac("unknown")},
		"disabled":                {edit: func(c cloud) { c.disabled("vm") }, told: []string{"port vm port-disabled"}},
		"another one is disabled": {edit: func(c cloud) { c.disabled("far") }, want: ports},
		"a floating IP of a disabled VM": {
			config: func(c *Config) { c.Ports, c.FloatingIPs = false, true },
			edit:   func(c cloud) { c.disabled("inner") },
			want:   []string{"172.24.0.60 br-ex/02:00:00:00:00:01"}, told: []string{"floating-ip 172.24.0.61 port-disabled"},
		},
		"virtual":                  {edit: func(c cloud) { c.virtual("vm", here, vip) }, want: both},
		"virtual, nobody has it":   {edit: func(c cloud) { c.virtual("", "", vip) }, want: ports},
		"virtual, it is elsewhere": {edit: func(c cloud) { c.virtual("far", there, vip) }, want: ports},
		"virtual, its VM left":     {edit: func(c cloud) { c.virtual("far", here, vip) }, want: ports},
		"virtual, its VM is unknown": {edit: func(c cloud) { c.virtual("gone", here, vip) },
			want: ports},
		"virtual, an address of an option": {edit: func(c cloud) { c.virtual("vm", here, "unknown") }, want: []string{both[0], both[1], both[2]}},
		"virtual, its VM starts": {edit: func(c cloud) {
			c.virtual("vm", here, vip)
			c.edit("vm", func(p *ovn.PortBinding) { p.Up = false })
		}, told: []string{"port vip port-down", "port vm port-down"}},
		"virtual, disabled":           {edit: func(c cloud) { c.virtual("vm", here, vip); c.disabled("vip") }, want: ports, told: []string{"port vip port-disabled"}},
		"virtual, its VM is disabled": {edit: func(c cloud) { c.virtual("vm", here, vip); c.disabled("vm") }, told: []string{"port vip port-disabled", "port vm port-disabled"}},
		"virtual, opted out": {edit: func(c cloud) {
			c.virtual("vm", here, vip)
			c.edit("vip", func(p *ovn.PortBinding) { p.ExternalIDs[keyExpose] = "false" })
		}, want: ports, told: []string{"port vip opted-out"}},
		"virtual, its VM has no MAC": {edit: func(c cloud) {
			c.virtual("vm", here, vip)
			mac("unknown")(c)
		}, told: []string{"port vip bad-mac"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, c := all, sample()
			cfg.FloatingIPs, cfg.Gateways = false, false
			if row.config != nil {
				row.config(&cfg)
			}
			row.edit(c)
			x := NewTranslator(cfg, &indices{}, &loadbalancer.Book{})
			x.Step(c.load(), nobody{}, complete)
			if diff := cmp.Diff(row.want, exposed(x.Tables())); diff != "" {
				t.Errorf("exposed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(row.told, told(x)); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			checkTables(t, x.Tables(), nobody{})
		})
	}
}
