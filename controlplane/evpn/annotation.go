package evpn

import (
	"fmt"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// The keys of Logical_Switch_Port.external_ids, and so of Port_Binding.external_ids. Those
// of networking-bgpvpn's words are written by people: it has no driver for OVN.
const (
	keyVNI        = "neutron_bgpvpn:vni"
	keyAS         = "neutron_bgpvpn:as"
	keyTargets    = "neutron_bgpvpn:rt"
	keyImport     = "neutron_bgpvpn:it"
	keyExport     = "neutron_bgpvpn:et"
	keyType       = "neutron_bgpvpn:type"
	keyExpose     = "sluice-expose"
	keyAnnounce   = "sluice-announce"
	keyNextHops   = "sluice-next-hops"
	keyPath       = "sluice-path"
	optionMTU     = "gateway_mtu"
	keyCIDRs      = "neutron:cidrs"
	optionNetwork = "network_name"
)

// annotation is what a cloud wrote on a port about EVPN.
type annotation struct {
	vni intent.VNI
	// asn is 0 when none is named.
	asn            uint32
	imports, exprt []intent.RouteTarget
}

// fault is the part of an ObjectError that a reader of one value knows.
type fault struct {
	reason string
	err    error
}

// typeL3 is the type of VPN that Type-5 routes carry.
const typeL3 = "l3"

// readAnnotation reads the keys neutron_bgpvpn. present is false when
// external_ids names no VNI in it.
func readAnnotation(ext map[string]string) (a annotation, present bool, f *fault) {
	vni, ok := ext[keyVNI]
	if !ok {
		return a, false, nil
	}
	if kind, ok := ext[keyType]; ok && kind != typeL3 {
		return a, true, &fault{reason.UnsupportedType, fmt.Errorf("external_ids:%s=%q: only l3 is carried, as EVPN Type-5 routes", keyType, kind)}
	}
	var err error
	if a.vni, err = parseVNI(vni); err != nil {
		return a, true, &fault{reason.BadVNI, err}
	}
	f = readPolicy(ext, &a)
	return a, true, f
}

// readPolicy reads the AS and the route targets.
func readPolicy(ext map[string]string, a *annotation) *fault {
	var err error
	if as, ok := ext[keyAS]; ok {
		if a.asn, err = parseASN(as); err != nil {
			return &fault{reason.BadAS, err}
		}
	}
	for _, key := range []string{keyTargets, keyImport, keyExport} {
		list, err := readTargets(ext[key])
		if err != nil {
			return &fault{reason.BadRouteTarget, fmt.Errorf("external_ids:%s: %w", key, err)}
		}
		if key != keyExport {
			a.imports = append(a.imports, list...)
		}
		if key != keyImport {
			a.exprt = append(a.exprt, list...)
		}
	}
	return nil
}

func readTargets(s string) ([]intent.RouteTarget, error) {
	words, err := ParseStringList(s)
	if err != nil {
		return nil, err
	}
	var out []intent.RouteTarget
	for _, w := range words {
		rt, err := intent.ParseRouteTarget(w)
		if err != nil {
			return nil, err
		}
		out = append(out, rt)
	}
	return out, nil
}

// readExpose reads external_ids:sluice-expose: false takes the object out.
func readExpose(ext map[string]string) (bool, *fault) {
	switch v := ext[keyExpose]; v {
	case "", "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, &fault{reason.BadExpose, fmt.Errorf("external_ids:%s=%q: want true or false", keyExpose, v)}
	}
}

// readMode reads external_ids:sluice-announce from the first map that has it;
// zero when none has.
func readMode(exts ...map[string]string) (Mode, *fault) {
	for _, ext := range exts {
		v, ok := ext[keyAnnounce]
		if !ok {
			continue
		}
		m, ok := ParseMode(v)
		if !ok {
			return 0, &fault{reason.BadAnnounce, fmt.Errorf("external_ids:%s=%q: want hosts, subnets or both", keyAnnounce, v)}
		}
		return m, nil
	}
	return 0, nil
}
