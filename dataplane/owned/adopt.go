package owned

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/dataplane/ovs"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Adoptable is what another agent left, and how it becomes Sluice's.
type Adoptable struct {
	// What names it for people.
	What string
	// Evidence is what shows that a VRF is that agent's; its flows have its cookie.
	Evidence string
	// Adopt puts Sluice's mark on it. Traffic goes on as it did.
	Adopt func(context.Context) error
}

// FindAdoptable lists what the EVPN driver of ovn-bgp-agent left on the node, in the
// order of adoption; of the VRFs of only, if there are any. strangers are devices with
// such names that nothing shows it to have made, and why: they stay what they are. The
// error is of what cannot be looked at; the lists hold all the rest. It reads only.
func FindAdoptable(ctx context.Context, sw *ovs.Switch, only []intent.VNI) (found []Adoptable, strangers []kernel.Stranger, err error) {
	// Without its ports an agent's VRF looks like an operator's.
	if _, err := sw.Bridges(); err != nil {
		return nil, nil, fmt.Errorf("ports of Open vSwitch: %w", err)
	}
	vrfs, strangers, err := kernel.AgentVRFs(netns.Namespace{}, func(name string) bool { _, ok := sw.HasPort(name); return ok })
	if err != nil {
		return nil, nil, fmt.Errorf("devices of VRFs: %w", err)
	}
	chosen := func(vni intent.VNI) bool { return len(only) == 0 || slices.Contains(only, vni) }
	vrfs = slices.DeleteFunc(vrfs, func(v kernel.AgentVRF) bool { return !chosen(v.VNI) })
	strangers = slices.DeleteFunc(strangers, func(s kernel.Stranger) bool { return !chosen(s.VNI) })
	ports, err := adoptedPorts(only)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range vrfs {
		for _, name := range v.Ports {
			ports[name] = true
		}
	}
	flows, err := sw.AgentFlows(ctx, ports)
	if err != nil {
		err = fmt.Errorf("flows: %w", err)
	}
	for _, v := range vrfs {
		found = append(found, adoptableVRF(v, flows))
	}
	for _, bridge := range slices.Sorted(maps.Keys(flows)) {
		list := flows[bridge]
		found = append(found, Adoptable{What: fmt.Sprintf("%d flows of bridge %s with cookie %d", len(list), bridge, ovs.AgentCookie),
			Adopt: func(ctx context.Context) error { return sw.AdoptFlows(ctx, bridge, list) }})
	}
	return found, strangers, err
}

func adoptableVRF(v kernel.AgentVRF, flows map[string][]ovs.AgentFlow) Adoptable {
	what, evidence := fmt.Sprintf("VRF %s: devices %s", v.VNI, strings.Join(v.Devices, ", ")), v.Evidence
	if len(v.Routes) > 0 {
		what += "; routes " + strings.Join(v.Routes, ", ")
	}
	count := 0
	for _, list := range flows {
		for _, f := range list {
			if slices.Contains(v.Ports, f.Port) {
				count++
			}
		}
	}
	if count > 0 {
		evidence += fmt.Sprintf(", and %d flows with cookie %d lead to it", count, ovs.AgentCookie)
	}
	return Adoptable{what, evidence, func(context.Context) error { return v.Adopt(netns.Namespace{}) }}
}

// adoptedPorts are devices that were adopted already, and may be ports that flows lead
// to: an adoption may have ended half way, after the devices and before the flows.
func adoptedPorts(only []intent.VNI) (map[string]bool, error) {
	names, err := kernel.Adopted(netns.Namespace{})
	if err != nil {
		return nil, fmt.Errorf("devices of VRFs: %w", err)
	}
	out := map[string]bool{}
	for _, name := range names {
		out[name] = len(only) == 0
	}
	for _, vni := range only {
		for _, name := range kernel.AgentPorts(vni) {
			if _, adopted := out[name]; adopted {
				out[name] = true
			}
		}
	}
	return out, nil
}

// strays are flows with the cookie of steering flows that no row has: adopted ones.
func strays(ctx context.Context, sw *ovs.Switch) ([]Thing, error) {
	steering := ovs.NewSteering(sw)
	counts, err := steering.Strays(ctx)
	if err != nil {
		return nil, fmt.Errorf("flows: %w", err)
	}
	var out []Thing
	for _, bridge := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, Thing{fmt.Sprintf("%d adopted flows of bridge %s", counts[bridge], bridge), func(ctx context.Context) error {
			return steering.RemoveStrays(ctx, bridge)
		}})
	}
	return out, nil
}

// Adopted are the devices of another agent that are only there to be removed, with
// their ports on provider bridges.
func Adopted(sw *ovs.Switch) ([]Thing, error) {
	names, err := kernel.Adopted(netns.Namespace{})
	if err != nil {
		return nil, fmt.Errorf("adopted devices: %w", err)
	}
	var out []Thing
	for _, name := range names {
		out = append(out, Thing{"adopted device " + name, func(ctx context.Context) error {
			return errors.Join(sw.DropPort(ctx, name), kernel.RemoveAdopted(netns.Namespace{}, name))
		}})
	}
	return out, nil
}

// Replaced removes what was adopted and carries nothing any more: Sluice's own flows
// are written. It tells whether anything adopted is left.
func Replaced(ctx context.Context, sw *ovs.Switch) (left bool, err error) {
	for _, list := range []func() ([]Thing, error){
		func() ([]Thing, error) { return strays(ctx, sw) },
		func() ([]Thing, error) { return Adopted(sw) },
	} {
		things, err := list()
		if err != nil {
			return true, err
		}
		for _, t := range things {
			if err := t.Remove(ctx); err != nil {
				return true, fmt.Errorf("%s: %w", t.What, err)
			}
		}
	}
	return false, nil
}
