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
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// Adoptable is what another agent left, and how it becomes Sluice's.
type Adoptable struct {
	// What names it for people.
	What string
	// Adopt puts Sluice's mark on it. Traffic goes on as it did.
	Adopt func(context.Context) error
}

// FindAdoptable lists what the EVPN driver of ovn-bgp-agent left on the node, in the
// order of adoption. strangers are devices with such names that it did not make, and
// why: they stay what they are. The error is of what cannot be looked at; the lists
// hold all the rest. It reads only.
func FindAdoptable(ctx context.Context, sw *ovs.Switch) (found []Adoptable, strangers []string, err error) {
	vrfs, strangers, err := kernel.AgentVRFs(netns.Namespace{})
	if err != nil {
		return nil, nil, fmt.Errorf("devices of VRFs: %w", err)
	}
	ports := map[string]bool{}
	adopted, err := kernel.Adopted(netns.Namespace{})
	if err != nil {
		return nil, nil, fmt.Errorf("devices of VRFs: %w", err)
	}
	// An adoption may have ended half way: after the devices and before the flows.
	for _, name := range adopted {
		ports[name] = true
	}
	for _, v := range vrfs {
		for _, name := range v.Ports {
			ports[name] = true
		}
		what := fmt.Sprintf("VRF %s: devices %s", v.VNI, strings.Join(v.Devices, ", "))
		if len(v.Routes) > 0 {
			what += "; routes " + strings.Join(v.Routes, ", ")
		}
		found = append(found, Adoptable{what, func(context.Context) error { return v.Adopt(netns.Namespace{}) }})
	}
	flows, err := sw.AgentFlows(ctx, ports)
	for _, bridge := range slices.Sorted(maps.Keys(flows)) {
		list := flows[bridge]
		found = append(found, Adoptable{fmt.Sprintf("%d flows of bridge %s with cookie %d", len(list), bridge, ovs.AgentCookie),
			func(ctx context.Context) error { return sw.AdoptFlows(ctx, bridge, list) }})
	}
	if err != nil {
		err = fmt.Errorf("flows: %w", err)
	}
	return found, strangers, err
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
