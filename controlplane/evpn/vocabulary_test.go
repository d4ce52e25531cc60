package evpn

import (
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/loadbalancer"
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// plain is one tenant of which nothing names a VNI, with the NAT rows known to be
// none where northbound is true.
func plain(northbound bool) cloud {
	c := node(false).tenant(1, 1001)
	for _, port := range []string{"gw-r1", "in-r1"} {
		c.edit(port, func(p *ovn.PortBinding) { p.ExternalIDs = map[string]string{} })
	}
	if northbound {
		c.put(ovn.LogicalRouter{UUID: "nb-r1"}, ovn.LogicalSwitch{UUID: "nb-public"}, ovn.LogicalSwitch{UUID: "nb-ls-r1"})
	}
	return c
}

func (c cloud) keys(id string, pairs ...string) cloud {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	switch row := c[id].(type) {
	case ovn.LogicalSwitch:
		row.ExternalIDs = m
		c[id] = row
	case ovn.LogicalRouter:
		row.Options = m
		c[id] = row
	case ovn.DatapathBinding:
		m["logical-router"], m["name"] = row.ExternalIDs["logical-router"], row.ExternalIDs["name"]
		row.ExternalIDs = m
		c[id] = row
	case ovn.PortBinding:
		row.ExternalIDs = m
		c[id] = row
	}
	return c
}

// TestVocabularies: each place that names a VNI is read, the nearest first, and
// one that says otherwise is told of.
func TestVocabularies(t *testing.T) {
	const (
		gateway, lrp, inLRP = "pb-gw-r1", "pb-lrp-gw-r1", "pb-lrp-in-r1"
		provider, network   = "nb-public", "nb-ls-r1"
		router, datapath    = "nb-r1", "lr-r1"
	)
	vrfName := func(name string) func(cloud) {
		return func(c cloud) {
			c.edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) { p.Options[optionVRFName] = name })
		}
	}
	for name, row := range map[string]struct {
		edit    func(cloud)
		dynamic bool
		// vni is the VRF's, 0 for none; exposed: the tenant's network too.
		vni     intent.VNI
		exposed bool
		errs    []string
		notes   []string
	}{
		"nothing":            {},
		"router port":        {edit: func(c cloud) { c.keys(lrp, "vni", "7", "vlan", "3").keys(inLRP, "vni", "7") }, vni: 7, exposed: true},
		"router port alone":  {edit: func(c cloud) { c.keys(lrp, "vni", "7") }, vni: 7},
		"router port, bad":   {edit: func(c cloud) { c.keys(lrp, "vni", "0") }, errs: []string{"gateway gw-r1 bad-vni"}},
		"interface, bad":     {edit: func(c cloud) { c.keys(lrp, "vni", "7").keys(inLRP, "vni", "") }, vni: 7, errs: []string{"interface in-r1 bad-vni"}},
		"switches":           {edit: func(c cloud) { c.keys(provider, keyVNI, "8").keys(network, keyVNI, "8", keyType, "l3") }, vni: 8, exposed: true},
		"switch of type l2":  {edit: func(c cloud) { c.keys(provider, keyVNI, "8", keyType, "l2") }, errs: []string{"gateway gw-r1 unsupported-type"}},
		"network alone":      {edit: func(c cloud) { c.keys(network, keyVNI, "8") }, notes: []string{"interface in-r1 no-gateway"}},
		"port before switch": {edit: func(c cloud) { c.keys(gateway, keyVNI, "9").keys(provider, keyVNI, "8") }, vni: 9, notes: []string{"gateway gw-r1 other-vni"}},
		"switch's side before router's": {edit: func(c cloud) { c.keys(gateway, keyVNI, "9").keys(lrp, "vni", "8") }, vni: 9,
			notes: []string{"gateway gw-r1 other-vni"}},
		"the same twice":         {edit: func(c cloud) { c.keys(gateway, keyVNI, "9").keys(lrp, "vni", "9") }, vni: 9},
		"a later one unreadable": {edit: func(c cloud) { c.keys(gateway, keyVNI, "9").keys(lrp, "vni", "x") }, vni: 9, notes: []string{"gateway gw-r1 other-vni"}},
		"interface's two":        {edit: func(c cloud) { c.keys(lrp, "vni", "7").keys(inLRP, "vni", "7").keys(network, keyVNI, "8") }, vni: 7, exposed: true, notes: []string{"interface in-r1 other-vni"}},
		"Neutron's EVPN port":    {edit: func(c cloud) { c.evpnPort("6") }, vni: 6},
		"its port and nearer":    {edit: func(c cloud) { c.evpnPort("6").keys(lrp, "vni", "7") }, vni: 7, notes: []string{"gateway gw-r1 other-vni"}},
		"VRF name, Southbound":   {edit: vrfName("evpnvrf-5"), vni: 5},
		"VRF name, Northbound":   {edit: func(c cloud) { c.keys(router, optionVRFName, "vrf-16777215") }, vni: intent.MaxVNI},
		"VRF name that is none":  {edit: func(c cloud) { c.keys(router, optionVRFName, "vrf-red", keyVRFID, "10") }},
		"VRF name with zeros":    {edit: vrfName("vrf-0010")},
		"VRF ID alone":           {edit: func(c cloud) { c.keys(router, keyVRFID, "10") }},
		"VRF ID, Sluice's":       {edit: func(c cloud) { c.keys(router, keyVRFID, "10") }, dynamic: true, vni: 10},
		"VRF ID, Southbound":     {edit: func(c cloud) { c.keys(datapath, keyVRFID, "11") }, dynamic: true, vni: 11},
		"VRF ID that is no VNI":  {edit: func(c cloud) { c.keys(datapath, keyVRFID, "16777216") }, dynamic: true, errs: []string{"gateway gw-r1 bad-vni"}},
		"VRF name and ID": {edit: func(c cloud) { c.keys(router, optionVRFName, "vrf-5", keyVRFID, "10") }, vni: 5,
			notes: []string{"gateway gw-r1 other-vni"}},
		"router port before VRF": {edit: func(c cloud) { c.keys(lrp, "vni", "7").keys(router, optionVRFName, "vrf-7", keyVRFID, "7") }, vni: 7},
	} {
		t.Run(name, func(t *testing.T) {
			c := plain(true)
			if row.edit != nil {
				row.edit(c)
			}
			cfg := testConfig()
			cfg.DynamicRouting = row.dynamic
			tr := compute(c, cfg)
			all := tr.Tables()
			if _, ok := wanted.Rows(all, intent.VRFs)[row.vni]; ok != (row.vni != 0) || len(wanted.Rows(all, intent.VRFs)) > 1 {
				t.Errorf("VRFs %v, want %d", wanted.Rows(all, intent.VRFs), row.vni)
			}
			_, exposed := wanted.Rows(all, intent.Routes)[intent.NewRouteKey(row.vni, netip.MustParsePrefix("10.10.0.0/24"))]
			_, exposed6 := wanted.Rows(all, intent.Routes)[intent.NewRouteKey(row.vni, netip.MustParsePrefix("2001:db8:10::/64"))]
			if exposed != row.exposed || exposed6 != row.exposed {
				t.Errorf("exposed: %t %t", exposed, exposed6)
			}
			errs, notes := complaints(tr)
			check(t, "errors", row.errs, errs)
			check(t, "notes", row.notes, notes)
		})
	}
}

// evpnPort adds the port that Neutron's EVPN service makes: a gateway port without
// addresses, on a switch that stands for the VNI.
func (c cloud) evpnPort(vni string) cloud {
	cr := pb("cr-evpn", ovn.TypeChassisRedirect, "lr-r1", "02:00:00:00:0f:01")
	cr.Chassis, cr.Options = here, map[string]string{"distributed-port": "evpn"}
	lrp := pb("evpn", ovn.TypePatch, "lr-r1", "02:00:00:00:0f:01")
	lrp.Options = map[string]string{"peer": "lsp-evpn"}
	lsp := pb("lsp-evpn", ovn.TypePatch, "ls-evpn", "router")
	lsp.Options = map[string]string{"peer": "evpn"}
	cr.ExternalIDs = map[string]string{"vni": vni, "vlan": "2"}
	lrp.ExternalIDs = cr.ExternalIDs
	return c.put(cr, lrp, lsp, ovn.LogicalSwitch{UUID: "nb-ls-evpn"},
		ovn.DatapathBinding{UUID: "ls-evpn", ExternalIDs: map[string]string{"logical-switch": "nb-ls-evpn"}})
}

// TestPolicyOfSwitch: route targets and the AS come from the place that names the
// VNI, else from one that names no other.
func TestPolicyOfSwitch(t *testing.T) {
	lists := []string{keyTargets, "['64512:1']", keyImport, "['64512:2', '64512:3']", keyExport, "[]"}
	for name, row := range map[string]struct {
		port, sw []string
		lrp      []string
		imports  string
		err      string
	}{
		"the switch's":       {sw: append([]string{keyVNI, "8"}, lists...), imports: "64512:1 64512:2 64512:3"},
		"beside the port's":  {port: []string{keyVNI, "8"}, sw: lists, imports: "64512:1 64512:2 64512:3"},
		"the port's own":     {port: []string{keyVNI, "8", keyImport, "64512:9"}, sw: lists, imports: "64512:9"},
		"of the router port": {lrp: []string{"vni", "8"}, port: []string{keyTargets, "64512:4"}, sw: lists, imports: "64512:4"},
		"of another VNI":     {port: []string{keyVNI, "8"}, sw: append([]string{keyVNI, "7"}, lists...)},
		"of type l2":         {port: []string{keyVNI, "8"}, sw: append([]string{keyType, "l2"}, lists...)},
		"no list":            {port: []string{keyVNI, "8"}, sw: []string{keyTargets, "['x']"}, err: "gateway gw-r1 bad-route-target"},
		"no AS":              {port: []string{keyVNI, "8"}, sw: []string{keyAS, "x"}, err: "gateway gw-r1 bad-as"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := compute(plain(true).keys("pb-gw-r1", row.port...).keys("pb-lrp-gw-r1", row.lrp...).keys("nb-public", row.sw...), testConfig())
			errs, _ := complaints(tr)
			if row.err != "" {
				check(t, "errors", []string{row.err}, errs)
				return
			}
			check(t, "errors", nil, errs)
			p := wanted.Rows(tr.Tables(), intent.Policies)[8]
			if got := p.Import.String(); got != row.imports || p.AutoImport != (row.imports == "") {
				t.Errorf("imports %q, automatic %t; want %q", got, p.AutoImport, row.imports)
			}
		})
	}
}

// TestUnseen: while the Northbound database has not told of a router's switches,
// what they may name is pending, and an interface without a gateway port says what
// cannot be seen.
func TestUnseen(t *testing.T) {
	c := plain(false)
	rows := c.load()
	rows.ExpectNB(true)
	tr := NewTranslator(testConfig(), indices{}, &loadbalancer.Book{})
	tr.Step(rows, ovn.Dirty{All: true}, true)
	if !tr.Pending(1001) {
		t.Error("a VNI that the switch may name is not pending")
	}
	c = plain(true).keys("nb-public", keyVNI, "1001")
	d := rows.Apply([]ovn.Change{ovn.Set(c["nb-public"]), ovn.Set(c["nb-ls-r1"]), ovn.Set(c["nb-r1"])})
	tr.Step(rows, d, true)
	if tr.Pending(1001) || tr.Pending(1002) || len(wanted.Rows(tr.Tables(), intent.VRFs)) != 1 {
		t.Errorf("pending %t %t, VRFs %v", tr.Pending(1001), tr.Pending(1002), wanted.Rows(tr.Tables(), intent.VRFs))
	}
	tr.Step(rows, rows.Apply([]ovn.Change{ovn.Delete(ovn.TableDatapathBinding, "lr-r1")}), true)
	if tr.unnamed != 0 {
		t.Errorf("%d unnamed", tr.unnamed)
	}
}
