package kernel

import (
	"context"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// VRFPorts is what the drivers of the kernel path need of Open vSwitch;
// *ovs.Switch has it.
type VRFPorts interface {
	// Datapath is "netdev" or "system".
	Datapath(bridge intent.BridgeKey) (string, error)
	// HasPort tells whether and where any port has the name.
	HasPort(name string) (intent.BridgeKey, bool)
	// OurVRFPorts lists the devices that EnsureVRFPort made ports.
	OurVRFPorts() (map[intent.VRFPortKey]string, error)
	// EnsureVRFPort makes the device the port of a VRF on the bridge, with the
	// default flow that drops what comes from it: no other flow may let a frame
	// through before this has returned.
	EnsureVRFPort(ctx context.Context, key intent.VRFPortKey, device string) error
	// CheckVRFPort is nil if EnsureVRFPort would change nothing.
	CheckVRFPort(ctx context.Context, key intent.VRFPortKey, device string) error
	// RemoveVRFPort undoes EnsureVRFPort; a port that is not there is no error.
	RemoveVRFPort(ctx context.Context, key intent.VRFPortKey) error
	// DropPort takes a port out of whatever bridge has it, one that was adopted; a
	// port that is not there is no error.
	DropPort(ctx context.Context, name string) error
}
