package identity

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// many is a node of 500 ports.
func many() []Port {
	var ports []Port
	for i := range 500 {
		mac, addr := intent.MAC{0xfa, 0x16, 0x3e, 1, byte(i >> 8), byte(i)}, netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})
		ports = append(ports, Port{
			Name: fmt.Sprintf("5a1f0c52-8f5e-4f0e-9d0c-%012d", i), Instance: fmt.Sprintf("7b1f0c52-8f5e-4f0e-9d0c-%012d", i),
			Project: "9c1f0c52-8f5e-4f0e-9d0c-000000000000", Network: fmt.Sprintf("3d1f0c52-8f5e-4f0e-9d0c-%012d", i),
			Numbers4: map[Number]netip.Addr{Number(i + 1): addr}, Numbers6: map[Number]intent.MAC{Number(i + 1000): mac},
			Row: &Row{Tap: fmt.Sprintf("tap%08d", i), IfIndex: uint32(i + 10), Answer: mac, Addresses: []intent.PortAddress{{MAC: mac, Addr: addr}}},
		})
	}
	return ports
}

// BenchmarkFile writes and reads what each port that comes or goes has written and read.
func BenchmarkFile(b *testing.B) {
	file, ports := filepath.Join(b.TempDir(), "identities.json"), many()
	b.Run("table", func(b *testing.B) {
		for b.Loop() {
			if _, err := NewTable(ports, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		t, err := NewTable(ports, nil)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if err := Write(file, t); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if _, err := Read(file); err != nil {
				b.Fatal(err)
			}
		}
	})
}
