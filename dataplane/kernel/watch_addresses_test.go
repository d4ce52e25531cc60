package kernel_test

import (
	"context"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
)

// Each change of an address is told, and the state at the beginning.
func TestWatchAddresses(t *testing.T) {
	h := newHost(t, "n")
	h.run("ip link add br-ex type bridge; ip link set br-ex up")
	ctx, cancel := context.WithCancel(context.Background())
	told, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- kernel.WatchAddresses(ctx, h.namespace(), func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	for _, change := range []string{"true", "ip addr add 172.24.4.1/24 dev br-ex", "ip addr add 2001:db8::1/64 dev br-ex nodad",
		"ip addr del 172.24.4.1/24 dev br-ex", "ip addr del 2001:db8::1/64 dev br-ex"} {
		h.run(change)
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Errorf("not told of %q", change)
		}
		for quiet := false; !quiet; {
			select {
			case <-told:
			case <-time.After(100 * time.Millisecond):
				quiet = true
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
