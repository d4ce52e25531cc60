package ebpf

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// PinnedVRFs reads the indices of the VRFs that are pinned in dir, without
// loading anything. A directory without a data plane has none.
func PinnedVRFs(dir string) (map[intent.VNI]uint16, error) {
	m, err := ebpf.LoadPinnedMap(pinOf(dir, bpfMapVrfsV2), &ebpf.LoadPinOptions{ReadOnly: true})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open pinned %s: %w", bpfMapVrfsV2, err)
	}
	defer m.Close()
	out := map[intent.VNI]uint16{}
	_, err = pinned.Walk(m, func(vni uint32, r bpfVrf) { out[intent.VNI(vni)] = uint16(r.Index) })
	return out, mapError(bpfMapVrfsV2, err)
}
