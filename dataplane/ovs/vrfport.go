package ovs

import (
	"context"
	"strconv"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The marks of a VRF's port: Port.external_ids:sluice = "vrf", with its VNI, and
// its VLAN where there is one.
const (
	markVRF = "vrf"
	keyVNI  = "sluice-vni"
	keyVLAN = "sluice-vlan"
)

func marksOf(k intent.VRFPortKey) map[string]string {
	out := map[string]string{keyMark: markVRF, keyVNI: k.VNI.String()}
	if k.VLAN != 0 {
		out[keyVLAN] = strconv.Itoa(int(k.VLAN))
	}
	return out
}

// vrfOf reads the marks; the zero value if they are not those of a VRF's port.
func vrfOf(bridge string, ids map[string]string) intent.VRFPortKey {
	vni, err := strconv.ParseUint(ids[keyVNI], 10, 24)
	if ids[keyMark] != markVRF || err != nil || vni == 0 {
		return intent.VRFPortKey{}
	}
	vlan, err := strconv.ParseUint(ids[keyVLAN], 10, 12)
	if err != nil && ids[keyVLAN] != "" {
		return intent.VRFPortKey{}
	}
	return intent.VRFPortKey{Bridge: intent.BridgeKey(bridge), VLAN: uint16(vlan), VNI: intent.VNI(vni)}
}

// marked tells whether the port is one of Sluice's.
func (p Port) marked() bool { return p.Ours || p.VRF.VNI != 0 }

// vrfPort is the port of a VRF on the bridge and VLAN.
func (b Bridge) vrfPort(vni intent.VNI, vlan uint16) (Port, bool) {
	k := intent.VRFPortKey{Bridge: intent.BridgeKey(b.Name), VLAN: vlan, VNI: vni}
	return b.find(func(p Port) bool { return vni != 0 && p.VRF == k })
}

// OurVRFPorts lists the VRFs' ports of all bridges.
func (s *Switch) OurVRFPorts() (map[intent.VRFPortKey]string, error) {
	bridges, err := s.Bridges()
	if err != nil {
		return nil, err
	}
	out := make(map[intent.VRFPortKey]string)
	for _, b := range bridges {
		for _, p := range b.Ports {
			if p.VRF.VNI != 0 {
				out[p.VRF] = p.Name
			}
		}
	}
	return out, nil
}

func vrfRole(k intent.VRFPortKey) role {
	return role{marks: marksOf(k), is: func(p Port) bool { return p.VRF == k }}
}

// EnsureVRFPort makes the device the port of a VRF on the bridge, as EnsurePort
// does Sluice's own.
func (s *Switch) EnsureVRFPort(ctx context.Context, key intent.VRFPortKey, device string) error {
	return s.ensure(ctx, key.Bridge, device, vrfRole(key))
}

// CheckVRFPort is nil if EnsureVRFPort would change nothing.
func (s *Switch) CheckVRFPort(ctx context.Context, key intent.VRFPortKey, device string) error {
	return s.check(ctx, key.Bridge, device, vrfRole(key).is)
}

// RemoveVRFPort undoes EnsureVRFPort, as RemovePort does EnsurePort.
func (s *Switch) RemoveVRFPort(ctx context.Context, key intent.VRFPortKey) error {
	return s.remove(ctx, key.Bridge, vrfRole(key))
}
