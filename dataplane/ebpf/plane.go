package ebpf

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
)

// Plane is a set of programs with their maps, in a pin directory of its own. What drivers
// a Dataplane has follows from it.
type Plane uint8

// The planes.
const (
	// Fabric forwards between the fabric and OVN, on gateway nodes: all drivers but those
	// of Clients.
	Fabric Plane = iota
	// Clients balances what VMs send to VIPs, on their taps, on any node: VIPs,
	// Neighbors and Clients.
	Clients
)

// programs are those that Load keeps running.
func (p Plane) programs() []Program {
	if p == Clients {
		return []Program{ClientIn, ClientOut}
	}
	return append(Programs(), VRFGuard, UnderlayIn)
}

// traced are those that a Tracer runs.
func (p Plane) traced() []Program {
	return slices.DeleteFunc(p.programs(), func(one Program) bool { return one == VRFGuard })
}

// check looks at the constants that the programs need.
func (p Plane) check(n Node) error {
	if p == Clients {
		return nil
	}
	return n.check()
}

// mapSpecs are the specs of the pinned maps with the sizes applied.
func (p Plane) mapSpecs(limits Limits) (map[string]*ebpf.MapSpec, error) {
	all, err := mapSpecs(limits)
	if err != nil {
		return nil, err
	}
	if p == Fabric {
		maps.DeleteFunc(all, func(name string, _ *ebpf.MapSpec) bool { return slices.Contains(ofClients, name) })
		return all, nil
	}
	used := map[string]bool{bpfMapTraceV1: true}
	for _, program := range p.programs() {
		spec, err := program.spec()
		if err != nil {
			return nil, err
		}
		for name := range spec.Maps {
			used[name] = true
		}
	}
	maps.DeleteFunc(all, func(name string, _ *ebpf.MapSpec) bool { return !used[name] })
	return all, nil
}

// ofClients are the maps that no program of Fabric uses.
var ofClients = []string{bpfMapClientsV2, bpfMapNeighborsV1}

// allPrograms are those of both planes.
func allPrograms() []Program { return append(Fabric.programs(), Clients.programs()...) }

// pins tells whether a name in the directory of a plane is one of its own.
func (p Plane) pins(name string, specs map[string]*ebpf.MapSpec) bool {
	_, ours := specs[name]
	return ours || outdated(name, specs) || pinned.IsOurs(name)
}
