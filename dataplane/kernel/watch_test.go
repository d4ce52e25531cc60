package kernel_test

import (
	"context"
	"sync/atomic"
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

// WatchLinks tells changes of what is looked at, and nothing else that the kernel tells of links.
func TestWatchLinks(t *testing.T) {
	h := newHost(t, "")
	h.run("ip link add b0 type bridge; ip link add e0 type veth peer name p0; ip link add e1 type veth peer name p1")
	ctx, cancel := context.WithCancel(t.Context())
	told, ended := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		ended <- kernel.WatchLinks(ctx, h.namespace(), func() { told <- struct{}{} })
	}()
	// quiet waits until everything of before is told. It is bounded by the test's own deadline.
	quiet := func() {
		for {
			select {
			case <-told:
			case <-time.After(200 * time.Millisecond):
				return
			}
		}
	}
	await := func(what string) {
		t.Helper()
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Errorf("not told of %q", what)
		}
	}
	await("the beginning")
	h.run("ip link set p0 txqueuelen 501; ip link set e0 txqueuelen 501; ip link set e1 txqueuelen 501; ip link set p1 txqueuelen 501") // each is seen once
	quiet()
	h.run("for n in 1 2 3 4 5 6 7 8 9; do ip link set e0 promisc on; ip link set e0 txqueuelen 50$n; ip link set e0 promisc off; done")
	select {
	case <-told:
		t.Error("told of what nobody looks at")
	case <-time.After(500 * time.Millisecond):
	}
	for _, change := range []string{"ip link set e0 up", "ip link set p0 up", "ip link set e0 mtu 1400", "ip link set e0 master b0",
		"ip link set e0 nomaster", "ip link set e1 name e2", "ip link set e0 down", "ip link del e0"} {
		quiet()
		h.run(change)
		await(change)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a link was when the kernel dropped changes is not compared with: a change back to it is told.
func TestWatchLinksAfterDroppedChanges(t *testing.T) {
	h := newHost(t, "")
	h.run("ip link add e0 type veth peer name p0; ip link add e1 type veth peer name p1; ip link set p0 up; ip link set e0 up")
	ctx, cancel := context.WithCancel(t.Context())
	told, hold, ended := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	var held atomic.Bool
	go func() {
		ended <- kernel.WatchLinks(ctx, h.namespace(), func() {
			select {
			case told <- struct{}{}:
			default:
			}
			if held.Load() {
				<-hold
			}
		})
	}()
	await := func(what string) {
		t.Helper()
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Errorf("not told of %q", what)
		}
	}
	quiet := func(after time.Duration) {
		for {
			select {
			case <-told:
			case <-time.After(after):
				return
			}
		}
	}
	await("the beginning")
	for _, change := range []string{"ip link set e0 mtu 1400", "ip link set e1 mtu 1400"} { // each is seen
		quiet(200 * time.Millisecond)
		h.run(change)
		await(change)
	}
	quiet(200 * time.Millisecond)
	held.Store(true)
	h.run("ip link set e1 mtu 1401")
	await("a change of another link")
	h.run("for n in $(seq 3000); do echo link set e1 txqueuelen $n; done | ip -batch -; ip link set e0 mtu 1300")
	close(hold)
	await("a lost subscription")
	quiet(2 * time.Second) // longer than the pause before the next one
	h.run("ip link set e0 mtu 1400")
	await("the MTU that was told before")
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
