package evpn

import (
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// PathMode is what is said of the path of VRFs. The zero value means: not stated
// here.
type PathMode uint8

// The modes.
const (
	// PathAuto: by the facts, the eBPF path unless something speaks against it.
	PathAuto PathMode = iota + 1
	PathEBPF
	PathKernel
)

// ParsePathMode reads auto, ebpf or kernel.
func ParsePathMode(s string) (PathMode, bool) {
	switch s {
	case "auto":
		return PathAuto, true
	case "ebpf":
		return PathEBPF, true
	case "kernel":
		return PathKernel, true
	}
	return 0, false
}

// PathFacts are what of the node speaks against the eBPF path.
type PathFacts struct {
	// Full are VRFs that the maps have no room for, and which map it is.
	Full map[intent.VNI]string
}

// Choice is the path of a VRF, and why.
type Choice struct {
	Path intent.Path
	// Reason is a word of pkg/reason, Detail a sentence, which may be empty.
	Reason, Detail string
}

// choosePath decides for one VRF. annotated is what its gateway ports say. The
// whole node on the kernel path comes first: its VXLAN devices leave no room for
// the one of the eBPF path. A port that asks for another path is told so. Then the nearest word counts, and of auto the facts.
func choosePath(vni intent.VNI, cfg Config, annotated PathMode, facts PathFacts) Choice {
	mode, why, where := cfg.Path, reason.PathConfigured, "path of the configuration"
	if cfg.Path == PathKernel {
		return Choice{intent.PathKernel, why, where + ": the whole node"}
	}
	if annotated != 0 {
		mode, why, where = annotated, reason.PathAnnotated, "external_ids:"+keyPath+" of a gateway port"
	}
	if v := cfg.VRFs[vni]; v.Path != 0 {
		mode, why, where = v.Path, reason.PathConfigured, fmt.Sprintf("evpn.vrfs.%s.path of the configuration", vni)
	}
	switch mode {
	case PathEBPF:
		return Choice{intent.PathEBPF, why, where}
	case PathKernel:
		return Choice{intent.PathKernel, why, where}
	}
	if name, full := facts.Full[vni]; full {
		return Choice{intent.PathKernel, reason.MapFull, name}
	}
	return Choice{intent.PathEBPF, reason.PathAuto, ""}
}

// SetFacts replaces the facts and returns what differs for it.
func (t *Translator) SetFacts(f PathFacts) wanted.Difference {
	t.facts = f
	vnis := map[intent.VNI]struct{}{}
	for vni, s := range t.vrfs {
		if s.index != 0 && choosePath(vni, t.cfg, s.annotated, f) != s.choice {
			vnis[vni] = struct{}{}
		}
	}
	if len(vnis) == 0 {
		return wanted.Difference{}
	}
	return t.rebuild(vnis)
}

// Choice is the path of a VRF that has its place, and why.
func (t *Translator) Choice(vni intent.VNI) (Choice, bool) {
	s := t.vrfs[vni]
	if s == nil || s.index == 0 {
		return Choice{}, false
	}
	return s.choice, true
}

// readPath reads external_ids:sluice-path from the first map that has it; zero when
// none has.
func readPath(exts ...map[string]string) (PathMode, *fault) {
	for _, ext := range exts {
		v, ok := ext[keyPath]
		if !ok {
			continue
		}
		m, ok := ParsePathMode(v)
		if !ok {
			return 0, &fault{reason.BadPath, fmt.Errorf("external_ids:%s=%q: want auto, ebpf or kernel", keyPath, v)}
		}
		return m, nil
	}
	return 0, nil
}

// choose finds the path of the VRF: the first gateway port that names one counts.
func (b *vrfBuild) choose(cfg Config, facts PathFacts, joined []member) {
	first := ""
	for _, m := range joined {
		switch {
		case m.Path == 0:
		case cfg.Path == PathKernel:
			if m.Path == PathEBPF {
				b.fail(m, kindGateway, m.Gateway.LogicalPort, reason.PathConflict,
					fmt.Errorf("VNI %d is on the kernel path, which path of the configuration sets for the whole node; external_ids:%s asks for ebpf", b.vni, keyPath))
			}
		case first == "":
			first, b.annotated = m.Gateway.LogicalPort, m.Path
		case m.Path != b.annotated:
			b.fail(m, kindGateway, m.Gateway.LogicalPort, reason.PathConflict,
				fmt.Errorf("VNI %d is on the path that %s names: external_ids:%s", b.vni, first, keyPath))
		}
	}
	b.choice = choosePath(b.vni, cfg, b.annotated, facts)
}

// kernel adds what the kernel path needs beside the tables of both paths.
func (b *vrfBuild) kernel(m member) {
	if b.choice.Path != intent.PathKernel {
		return
	}
	g := m.Gateway
	// The kernel path prefers the table with the VNI's number, too.
	if m.OVNTable == uint32(b.vni) {
		b.fail(m, kindGateway, g.LogicalPort, reason.OVNTable, fmt.Errorf("ovn-controller has routing table %d for the router, as its options:%s or its tunnel key says, and so has the VRF: "+
			"it learns the VRF's own routes into OVN, and its blackholes come before them", m.OVNTable, keyVRFID))
	}
	wanted.Put(b.tables, intent.KernelGateways, intent.KernelGateway{
		Key: g.Key, VNI: g.VNI, Addr4: g.Addr4, Addr6: g.Addr6, MTU: g.MTU,
		ICMPSource4: g.ICMPSource4, ICMPSource6: g.ICMPSource6,
	})
}
