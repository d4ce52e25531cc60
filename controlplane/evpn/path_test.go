package evpn

import (
	"maps"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

func TestChoosePath(t *testing.T) {
	full := PathFacts{Full: map[intent.VNI]string{1001: "hosts_v1"}}
	for name, row := range map[string]struct {
		all, vrf, annotated PathMode
		facts               PathFacts
		path                intent.Path
		reason              string
	}{
		"nothing said":                   {path: intent.PathEBPF, reason: reason.PathAuto},
		"auto":                           {all: PathAuto, path: intent.PathEBPF, reason: reason.PathAuto},
		"all ebpf":                       {all: PathEBPF, facts: full, path: intent.PathEBPF, reason: reason.PathConfigured},
		"the whole node":                 {all: PathKernel, annotated: PathEBPF, path: intent.PathKernel, reason: reason.PathConfigured},
		"one configured":                 {vrf: PathKernel, path: intent.PathKernel, reason: reason.PathConfigured},
		"one annotated":                  {annotated: PathKernel, path: intent.PathKernel, reason: reason.PathAnnotated},
		"annotated over all":             {all: PathEBPF, annotated: PathKernel, path: intent.PathKernel, reason: reason.PathAnnotated},
		"configured over annotated":      {vrf: PathEBPF, annotated: PathKernel, path: intent.PathEBPF, reason: reason.PathConfigured},
		"configured auto over annotated": {vrf: PathAuto, annotated: PathKernel, path: intent.PathEBPF, reason: reason.PathAuto},
		"annotated auto over all":        {all: PathEBPF, annotated: PathAuto, facts: full, path: intent.PathKernel, reason: reason.MapFull},
		"map full":                       {facts: full, path: intent.PathKernel, reason: reason.MapFull},
		"another VRF's map full":         {facts: PathFacts{Full: map[intent.VNI]string{1002: "hosts_v1"}}, path: intent.PathEBPF, reason: reason.PathAuto},
		"ebpf all the same":              {vrf: PathEBPF, facts: full, path: intent.PathEBPF, reason: reason.PathConfigured},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := Config{Path: row.all, VRFs: map[intent.VNI]VRFConfig{1001: {Path: row.vrf}}}
			got := choosePath(1001, cfg, row.annotated, row.facts)
			if got.Path != row.path || got.Reason != row.reason {
				t.Errorf("%+v, want %s for %s", got, row.path, row.reason)
			}
		})
	}
}

// onPath tells whether all rows of a VRF with one gateway port say that it is on
// the path.
func onPath(t *testing.T, all wanted.Set, vni intent.VNI, p intent.Path) {
	t.Helper()
	if got := wanted.Rows(all, intent.VRFs)[vni].Path; got != p {
		t.Errorf("VRF %d is on path %s, want %s", vni, got, p)
	}
	kernel := p == intent.PathKernel
	v, ok := wanted.Rows(all, intent.KernelVRFs)[vni]
	if ok != kernel || kernel && (v.VNI != vni || v.Index != wanted.Rows(all, intent.VRFs)[vni].Index) {
		t.Errorf("devices of VRF %d: %+v, %t", vni, v, ok)
	}
	for k, g := range wanted.Rows(all, intent.Gateways) {
		if g.VNI != vni {
			continue
		}
		want := intent.KernelGateway{}
		if kernel {
			want = intent.KernelGateway{Key: k, VNI: vni, Addr4: g.Addr4, Addr6: g.Addr6, ICMPSource4: g.ICMPSource4, ICMPSource6: g.ICMPSource6, MTU: g.MTU}
		}
		if got := wanted.Rows(all, intent.KernelGateways)[k]; got != want {
			t.Errorf("gateway %s: %+v, want %+v", k, got, want)
		}
		for sk, s := range wanted.Rows(all, intent.SteeringFlows) {
			if sk.Gateway != k {
				continue
			}
			turned := kernel && (sk.Kind == intent.SteerSource || sk.Kind == intent.SteerToOVN)
			if turned != (s.Path == intent.PathKernel) || turned != (s.VNI == vni) {
				t.Errorf("flow %s: path %s, VNI %d", sk, s.Path, s.VNI)
			}
		}
	}
}

func TestAnnotatedPath(t *testing.T) {
	c := node(true).tenant(1, 1001).tenant(2, 1002).tenant(3, 1003)
	c.edit("gw-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "kernel" })
	c.edit("lrp-gw-r2", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "kernel" })
	c.edit("gw-r3", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "fast" })
	tr := compute(c, testConfig())
	all := tr.Tables()
	onPath(t, all, 1001, intent.PathKernel)
	onPath(t, all, 1002, intent.PathKernel)
	onPath(t, all, 1003, intent.PathEBPF)
	if errs, _ := complaints(tr); !slices.Equal(errs, []string{"gateway gw-r3 " + reason.BadPath}) {
		t.Errorf("complaints %v", errs)
	}
	if n := len(routes(tr, intent.RouteLocal)); n == 0 || len(announced(tr)) == 0 {
		t.Error("a VRF on the kernel path has no routes, or announces none")
	}
}

func TestGatewayPortsThatNameSeveralPaths(t *testing.T) {
	c := node(true).tenant(1, 1001).tenant(2, 1001)
	c.edit("in-r2", func(p *ovn.PortBinding) { delete(p.ExternalIDs, keyVNI) })
	c.edit("gw-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "kernel" })
	c.edit("gw-r2", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "ebpf" })
	tr := compute(c, testConfig())
	onPath(t, tr.Tables(), 1001, intent.PathKernel)
	if errs, _ := complaints(tr); !slices.Contains(errs, "gateway cr-lrp-gw-r2 "+reason.PathConflict) {
		t.Errorf("complaints %v", errs)
	}
}

// A gateway port that asks for the eBPF path on a node that is on the kernel path as a
// whole is told that it does not get it.
func TestWholeNodeLeavesNoOtherPath(t *testing.T) {
	c := node(true).tenant(1, 1001).tenant(2, 1002).tenant(3, 1003)
	c.edit("gw-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "ebpf" })
	c.edit("gw-r2", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = "kernel" })
	cfg := testConfig()
	cfg.Path = PathKernel
	tr := compute(c, cfg)
	for _, vni := range []intent.VNI{1001, 1002, 1003} {
		onPath(t, tr.Tables(), vni, intent.PathKernel)
	}
	if errs, _ := complaints(tr); !slices.Equal(errs, []string{"gateway cr-lrp-gw-r1 " + reason.PathConflict}) {
		t.Errorf("complaints %v", errs)
	}
}

// A fact changes the VRFs that it is about, and no other.
func TestFactsChangePaths(t *testing.T) {
	tr := compute(node(true).tenant(1, 1001).tenant(2, 1002), testConfig())
	sum := tr.Tables()
	d := tr.SetFacts(PathFacts{Full: map[intent.VNI]string{1001: "hosts_v1"}})
	if len(wanted.Of(d, intent.VRFs).Set) != 1 || len(wanted.Of(d, intent.KernelVRFs).Set) != 1 || !wanted.Of(d, intent.Routes).Empty() || !wanted.Of(d, intent.Announcements).Empty() || !wanted.Of(d, intent.Gateways).Empty() {
		t.Errorf("%+v", d)
	}
	sum.Apply(d)
	onPath(t, sum, 1001, intent.PathKernel)
	onPath(t, sum, 1002, intent.PathEBPF)
	if c, ok := tr.Choice(1001); !ok || c.Reason != reason.MapFull || c.Detail != "hosts_v1" {
		t.Errorf("choice %+v, %t", c, ok)
	}
	if d := tr.SetFacts(PathFacts{Full: map[intent.VNI]string{1001: "hosts_v1"}}); !d.Empty() {
		t.Errorf("the same facts: %+v", d)
	}
	sum.Apply(tr.SetFacts(PathFacts{}))
	onPath(t, sum, 1001, intent.PathEBPF)
	if len(wanted.Rows(sum, intent.KernelGateways)) != 0 || !maps.Equal(wanted.Rows(sum, intent.SteeringFlows), wanted.Rows(tr.Tables(), intent.SteeringFlows)) {
		t.Error("something of the kernel path is left")
	}
}

func TestQuietVRFIsForwarded(t *testing.T) {
	cfg := testConfig()
	cfg.VRFs = map[intent.VNI]VRFConfig{1001: {Quiet: true}}
	tr := compute(node(true).tenant(1, 1001), cfg)
	if len(announced(tr)) != 0 || len(routes(tr, intent.RouteLocal)) == 0 {
		t.Errorf("announced %v, routes %v", announced(tr), routes(tr, intent.RouteLocal))
	}
}

// TestOVNTable: the kernel path and ovn-controller must not share a routing table.
func TestOVNTable(t *testing.T) {
	for name, row := range map[string]struct {
		dynamic, id, path string
		want              []string
	}{
		"the same":           {"true", "1001", "kernel", []string{"gateway cr-lrp-gw-r1 ovn-table"}},
		"another":            {"true", "77", "kernel", nil},
		"on the eBPF path":   {"true", "1001", "ebpf", nil},
		"no dynamic routing": {"", "1001", "kernel", nil},
		"a table of its own": {"true", "", "kernel", nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := node(true).tenant(1, 1001)
			c.edit("cr-lrp-gw-r1", func(p *ovn.PortBinding) { p.Options[optionDynamic] = row.dynamic })
			c.edit("gw-r1", func(p *ovn.PortBinding) { p.ExternalIDs[keyPath] = row.path })
			c.keys("lr-r1", keyVRFID, row.id)
			errs, _ := complaints(compute(c, testConfig()))
			check(t, "errors", row.want, errs)
		})
	}
}
