package owned

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
)

// ClientPins is where the programs and maps of VMs' taps are pinned that balance, beside
// the directory of those that forward, which a node has only as a gateway.
func ClientPins(pins string) string { return filepath.Clean(pins) + "-clients" }

// Clients lists what balancing on VMs' taps has on a node. pins is ClientPins. The taps
// are others' and stay; what VMs send to VIPs is OVN's to balance then. It reads only.
func Clients(pins string) ([]Thing, error) {
	pinned, err := ebpf.Pins(pins, ebpf.Clients)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("pinned objects of taps: %w", err)
	}
	if len(pinned) == 0 {
		return nil, nil
	}
	what := fmt.Sprintf("the directory %s, where %d programs, links and maps of VMs' taps are pinned", pins, len(pinned))
	return []Thing{{what, func(context.Context) error { return ebpf.Remove(pins, ebpf.Clients) }}}, nil
}
