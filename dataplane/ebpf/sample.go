package ebpf

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// parseSample reads a row of the ring buffer.
func parseSample(raw []byte) (Sample, error) {
	var v bpfSample
	if _, err := binary.Decode(raw, binary.NativeEndian, &v); err != nil {
		return Sample{}, fmt.Errorf("a sample of %d bytes: %w", len(raw), err)
	}
	if int(v.Caplen) > len(v.Data) {
		return Sample{}, fmt.Errorf("a sample that claims %d bytes of a packet", v.Caplen)
	}
	program := Program(v.Direction)
	switch vni := intent.VNI(v.Vni); {
	case program == FabricIn && vni == intent.DefaultVRF:
		program = UnderlayIn
	case vni.IsSwitch():
		program = []Program{ClientIn, ClientOut}[v.Direction%2]
	}
	return Sample{
		Uptime: time.Duration(v.Time), Reason: drop.Reason(v.Reason), VNI: intent.VNI(v.Vni), Program: program,
		IfIndex: v.Ifindex, Len: int(v.Len), Frame: append([]byte(nil), v.Data[:v.Caplen]...),
	}, nil
}
