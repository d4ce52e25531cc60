package kernel_test

import (
	"context"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
)

// Whatever changes a lookup is told, and the state at the beginning. What goes with a link or
// a next hop goes without a word of its own.
func TestWatchRoutes(t *testing.T) {
	h := newHost(t, "r")
	h.run("ip link add eth0 type veth peer name far; ip link set eth0 up; ip link set far up; ip addr add 192.0.2.1/24 dev eth0; ip addr add 2001:db8::1/64 dev eth0 nodad; echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad")
	ctx, cancel := context.WithCancel(context.Background())
	told, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- kernel.WatchRoutes(ctx, h.namespace(), func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	for _, change := range []string{
		"true", "ip route add 203.0.113.1/32 via 192.0.2.9", "ip route replace 203.0.113.1/32 via 192.0.2.8", "ip route del 203.0.113.1/32",
		"ip -6 route add 2001:db8:1::/48 via 2001:db8::9", "ip -6 route del 2001:db8:1::/48", "ip route add unreachable 203.0.113.1/32",
		"ip rule add from 192.0.2.1 lookup 7", "ip -6 rule add from 2001:db8::1 lookup 7",
		"ip nexthop add id 5 via 192.0.2.7 dev eth0", "ip route add 203.0.113.2/32 nhid 5", "ip nexthop del id 5",
		"ip link set eth0 mtu 1400", "ip addr del 192.0.2.1/24 dev eth0", "ip link set eth0 down",
	} {
		h.run(change)
		select {
		case <-told:
		case <-time.After(30 * time.Second):
			t.Errorf("not told of %q", change)
		}
		for quiet := false; !quiet; {
			select {
			case <-told:
			case <-time.After(50 * time.Millisecond):
				quiet = true
			}
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
