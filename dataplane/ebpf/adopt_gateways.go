package ebpf

import (
	"fmt"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// pinnedGateway is a row of the gateways map as a start finds it.
type pinnedGateway struct {
	key bpfGatewayKey
	row bpfGateway
	// device is the entry's: the one that packets are sent out of.
	device uint32
}

// adoptGateways takes over the rows of the gateways map. One that has no name
// cannot be told from its key and is removed. So is one of two rows of a gateway,
// which a crash leaves when the bridge's device had changed.
func (s *store) adoptGateways() error {
	var gone []bpfGatewayKey
	kept := map[intent.GatewayKey]pinnedGateway{}
	n, err := pinned.Walk(s.t[bpfMapGatewaysV1], func(k bpfGatewayKey, row bpfGateway) {
		e, name, err := s.readEntry(row.Entry)
		g := gatewayOf(e, name)
		if err != nil || e.Vni != row.Vni || g.Key.Bridge == "" || gatewayKernelKey(g.Key, k.Ifindex) != k {
			gone = append(gone, k)
			return
		}
		found := pinnedGateway{k, row, e.Ifindex}
		if other, twice := kept[g.Key]; twice {
			if s.rank(g.Key, other) >= s.rank(g.Key, found) {
				gone = append(gone, k)
				return
			}
			gone = append(gone, other.key)
		}
		kept[g.Key] = found
	})
	s.rows[bpfMapGatewaysV1] = n
	if err != nil {
		return mapError(bpfMapGatewaysV1, err)
	}
	for k, found := range kept {
		if err := s.adoptGateway(k, found); err != nil {
			return err
		}
	}
	for _, k := range gone {
		if err := s.drop(bpfMapGatewaysV1, k); err != nil {
			return err
		}
	}
	return s.adoptRetired()
}

// rank orders the rows of one gateway: best is that of the device which the
// bridge has now and which the entry names.
func (s *store) rank(k intent.GatewayKey, g pinnedGateway) (rank int) {
	if port, ok := s.bridges.Port(k.Bridge); ok && port.IfIndex == g.key.Ifindex {
		rank += 2
	}
	if g.device == g.key.Ifindex {
		rank++
	}
	return rank
}

// adoptGateway takes one row over. Where a crash came after the entry had the
// new device and before the gateway had, the gateway follows.
func (s *store) adoptGateway(k intent.GatewayKey, found pinnedGateway) error {
	vni := intent.VNI(found.row.Vni)
	s.entries.adopt(found.row.Entry, entryKey{k, vni})
	s.entries.retain(found.row.Entry)
	s.live[k] = liveGateway{row: found.row.Entry, vni: vni, ifindex: found.device}
	if found.device == found.key.Ifindex || s.readOnly {
		return nil
	}
	if err := s.put(bpfMapGatewaysV1, gatewayKernelKey(k, found.device), found.row); err != nil {
		return err
	}
	return s.drop(bpfMapGatewaysV1, found.key)
}

// outOfService is the key of an entry that is out of service. No gateway has this
// address; one without an address would be a segment's.
func outOfService(row uint32) entryKey {
	return entryKey{gateway: intent.GatewayKey{
		Bridge: intent.BridgeKey(fmt.Sprintf("?%d", row)), MAC: intent.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
	}}
}

// adoptRetired takes over entries that are out of service, by their names. A
// crash may have come before such an entry was cleared: as long as it says that
// it is of a VRF, routes of that VRF lead to a gateway that may be another
// VRF's by now.
func (s *store) adoptRetired() error {
	var rows []uint32
	n, err := pinned.Walk(s.t[bpfMapNamesV1], func(row uint32, _ bpfGatewayName) {
		if _, ok := s.entries.keys[row]; !ok {
			rows = append(rows, row)
		}
	})
	s.rows[bpfMapNamesV1] = n
	if err != nil {
		return mapError(bpfMapNamesV1, err)
	}
	for _, row := range rows {
		s.entries.adopt(row, outOfService(row))
		if s.readOnly {
			continue
		}
		if err := s.setRow(bpfMapEntriesV1, row, bpfEntry{}); err != nil {
			return err
		}
	}
	return nil
}

// repairSpeakers gives each VRF that has gateways one of them as the source of
// errors, and the others none.
func (s *store) repairSpeakers() error {
	want := map[uint32]uint32{}
	for _, l := range s.live {
		want[uint32(l.vni)] = l.row
	}
	var gone []uint32
	n, err := pinned.Walk(s.t[bpfMapSpeakersV1], func(vni, row uint32) {
		if e, ok := s.entries.keys[row]; ok && uint32(e.vni) == vni && s.live[e.gateway].row == row {
			delete(want, vni)
		} else {
			gone = append(gone, vni)
		}
	})
	s.rows[bpfMapSpeakersV1] = n
	if err != nil {
		return mapError(bpfMapSpeakersV1, err)
	}
	for vni, row := range want {
		if err := s.put(bpfMapSpeakersV1, vni, row); err != nil {
			return err
		}
	}
	for _, vni := range gone {
		if _, replaced := want[vni]; replaced {
			continue
		}
		if err := s.drop(bpfMapSpeakersV1, vni); err != nil {
			return err
		}
	}
	return nil
}
