package metadata

import (
	"fmt"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

// BenchmarkStep computes a node of 500 networks with a VM each again, as is done
// several times when a port comes; early, while rows of its network are still to come.
func BenchmarkStep(b *testing.B) {
	c := sample()
	for i := range 500 {
		name, network := fmt.Sprintf("p%03d", i), fmt.Sprintf("n%03d", i)
		c.network(network, fmt.Sprintf("fa:16:3e:00:%02x:%02x 10.1.0.2", i/256, i%256), "10.1.0.2/24 2001:db8:1::2/64")
		c.vm(name, network, fmt.Sprintf("fa:16:3e:01:%02x:%02x 10.1.0.5 2001:db8:1::5", i/256, i%256))
		c.plug(name, "br-int", uint32(i+100))
	}
	rows := c.load()
	for name, inSync := range map[string]ovn.InSync{"whole": synced, "early": {VSwitch: true, NB: true, SBGrows: true}} {
		b.Run(name, func(b *testing.B) {
			t := NewTranslator(Config{Answer: answer})
			t.Step(rows, c.devices, synced)
			for b.Loop() {
				if d := t.Step(rows, c.devices, inSync); !d.Empty() {
					b.Fatal(d)
				}
			}
		})
	}
}
