package kernel_test

import (
	"context"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
)

func TestWatch(t *testing.T) {
	h := newHost(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- kernel.Watch(ctx, h.namespace(), func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	// Until the subscription is there nothing is told: links come and go till then.
	for begun := false; !begun; {
		h.run("ip link add sluice9 type veth peer name p9; ip link del sluice9")
		select {
		case <-told:
			begun = true
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, change := range []string{"ip link add sluice0 type veth peer name p0", "ip link set sluice0 up", "ip link set sluice0 down", "ip link del sluice0"} {
		for quiet := false; !quiet; {
			select {
			case <-told:
			case <-time.After(200 * time.Millisecond):
				quiet = true
			}
		}
		h.run(change)
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Errorf("not told of %q", change)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
