package ebpf

import (
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// Rows of Served without a MAC are in the map known, by the bridge's device.

func knownKernelKey(k intent.ServedKey, ifindex uint32) bpfKnownKey {
	return bpfKnownKey{Ifindex: ifindex, Vlan: uint32(k.Gateway.VLAN), Addr: k.Prefix.Addr().As16()}
}

func knownKey(k bpfKnownKey, v bpfKnown) intent.ServedKey {
	a := from16(k.Addr)
	segment := intent.GatewayKey{Bridge: intent.BridgeKey(fromChars(v.Bridge[:])), VLAN: uint16(k.Vlan)}
	return intent.ServedKey{Gateway: segment, Prefix: netip.PrefixFrom(a, a.BitLen())}
}

// adoptKnown copies the map. Of two rows of one key, which a crash leaves when
// the bridge's device had changed, the one of the old device goes.
func (s *store) adoptKnown() error {
	type stale struct {
		key     intent.ServedKey
		ifindex uint32
	}
	var gone []stale
	n, err := pinned.Walk(s.t[bpfMapKnownV1], func(k bpfKnownKey, v bpfKnown) {
		key := knownKey(k, v)
		if other, twice := s.known[key]; twice {
			if port, ok := s.bridges.Port(key.Gateway.Bridge); ok && port.IfIndex == other {
				gone = append(gone, stale{key, k.Ifindex})
				return
			}
			gone = append(gone, stale{key, other})
		}
		s.known[key] = k.Ifindex
	})
	s.rows[bpfMapKnownV1] = n
	if err != nil {
		return mapError(bpfMapKnownV1, err)
	}
	for _, g := range gone {
		if err := s.drop(bpfMapKnownV1, knownKernelKey(g.key, g.ifindex)); err != nil {
			return err
		}
	}
	return nil
}

// listKnown adds the rows of the map. One whose bridge has another device by
// now is listed with the zero value.
func (s *store) listKnown(out map[intent.ServedKey]intent.Served) error {
	_, err := pinned.Walk(s.t[bpfMapKnownV1], func(k bpfKnownKey, v bpfKnown) {
		key := knownKey(k, v)
		row := intent.Served{Key: key}
		if port, ok := s.bridges.Port(key.Gateway.Bridge); !ok || port.IfIndex != k.Ifindex {
			row = intent.Served{}
		}
		out[key] = row
	})
	return mapError(bpfMapKnownV1, err)
}

func (s *store) applyKnown(r intent.Served) error {
	var value bpfKnown
	segment := r.Key.Gateway
	port, ok := s.bridges.Port(segment.Bridge)
	switch {
	case r.Answer || !r.Key.Prefix.IsSingleIP():
		return fmt.Errorf("%s, answer %t: a row of a segment denies a single address", r.Key.Prefix, r.Answer)
	case segment.VLAN > 4094:
		return fmt.Errorf("VLAN %d is outside of 0..4094", segment.VLAN)
	case len(segment.Bridge) >= len(value.Bridge):
		return fmt.Errorf("the bridge's name is longer than %d bytes", len(value.Bridge)-1)
	case !ok || port.IfIndex == 0:
		return fmt.Errorf("for the device into bridge %s: %w", segment.Bridge, reconcile.ErrNotReady)
	}
	toChars(value.Bridge[:], string(segment.Bridge))
	if err := s.put(bpfMapKnownV1, knownKernelKey(r.Key, port.IfIndex), value); err != nil {
		return err
	}
	old, had := s.known[r.Key]
	s.known[r.Key] = port.IfIndex
	if had && old != port.IfIndex {
		return s.drop(bpfMapKnownV1, knownKernelKey(r.Key, old))
	}
	return nil
}

func (s *store) deleteKnown(k intent.ServedKey) error {
	ifindex, had := s.known[k]
	if !had {
		return nil
	}
	if err := s.drop(bpfMapKnownV1, knownKernelKey(k, ifindex)); err != nil {
		return err
	}
	delete(s.known, k)
	return nil
}
