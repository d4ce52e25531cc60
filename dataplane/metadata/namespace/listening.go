package namespace

import (
	"bytes"
	"fmt"
	"os"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// The metadata addresses with their port, and the state of a listening socket, as the tables of
// sockets of a namespace have them (proc(5)): words of 32 bits in the order of the machine,
// which is little-endian wherever Sluice runs.
const (
	listens4 = " FEA9FEA9:0050 00000000:0000 0A "
	listens6 = " 000080FE0000000000000000FEA9FEA9:0050 00000000000000000000000000000000:0000 0A "
)

// Listening tells whether somebody listens at the metadata addresses in the namespace that a
// network has now. six: at that of IPv6, too.
func (n Names) Listening(network string, six bool) (bool, error) {
	path, all := n.Path(network), true
	err := netns.At(path).Do(func() error {
		for table, row := range map[string]string{"tcp": listens4, "tcp6": listens6} {
			if table == "tcp6" && !(six && HasIPv6()) {
				continue
			}
			text, err := os.ReadFile("/proc/thread-self/net/" + table)
			if err != nil {
				return fmt.Errorf("sockets of %s: %w", path, err)
			}
			all = all && bytes.Contains(text, []byte(row))
		}
		return nil
	})
	return all && err == nil, err
}
