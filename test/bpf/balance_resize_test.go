package bpf_test

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Flows go on when their map gets another size, also those that begin while that goes on:
// programs for it take seconds to load.
func TestResizeKeepsFlows(t *testing.T) {
	for _, c := range []struct {
		client netip.Addr
		vip    netip.AddrPort
	}{{client4, netip.AddrPortFrom(vip4, 80)}, {client6, netip.AddrPortFrom(vip6, 80)}} {
		t.Run(c.client.String(), func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			allKnown(t, dir)
			tr := tracer(t, dir)
			type begun struct {
				client, backend netip.AddrPort
				at              time.Duration
			}
			var flows []begun
			began := time.Now()
			begin := func() {
				client := netip.AddrPortFrom(c.client, uint16(1000+len(flows)))
				_, backend := send(t, tr, asked(intent.TCP, client, c.vip, "S"))
				send(t, tr, asked(intent.TCP, client, c.vip, "A"))
				flows = append(flows, begun{client, backend, time.Since(began)})
			}
			for range 100 {
				begin()
			}
			d.Close()
			done := make(chan *ebpf.Dataplane)
			began = time.Now()
			go func() {
				d, err := ebpf.Load(ebpf.Config{Dir: dir, Node: node(), Limits: ebpf.Limits{Flows: 1 << 15}, Bridges: bridges{}, Log: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Error(err)
				}
				done <- d
			}()
			for loading := true; loading; {
				select {
				case d = <-done:
					loading = false
				case <-time.After(10 * time.Millisecond):
					begin()
				}
			}
			took := time.Since(began)
			if d == nil {
				return
			}
			t.Cleanup(func() { d.Close() })
			tr = tracer(t, dir)
			v := worldVIPs()[intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip.Addr(), Port: c.vip.Port()}]
			v.Backends = intent.NewBackendSet(v.Backends.All()[0])
			apply(t, d.VIPs(), vips(v)) // the table alone would lead elsewhere
			during := 0
			for i, f := range flows {
				if i >= 100 {
					// The last ones were begun by the old programs, when those had been replaced.
					if f.at > took*3/4 {
						continue
					}
					during++
				}
				if _, to := send(t, tr, asked(intent.TCP, f.client, c.vip, "A")); to != f.backend {
					t.Errorf("flow %d, of %v of %v, goes to %s and went to %s", i, f.at, took, to, f.backend)
				}
				if from, _ := send(t, tr, replied(intent.TCP, f.backend, f.client, "A")); from != c.vip {
					t.Errorf("flow %d is answered from %s", i, from)
				}
			}
			t.Logf("%d flows began within %v", during, took)
			if during < 5 {
				t.Errorf("only %d flows began meanwhile", during)
			}
		})
	}
}
