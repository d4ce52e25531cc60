package kernel_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/kernel"
	"github.com/ovn-sluice/sluice/pkg/link"
)

// A router says that a packet does not fit: that is told, and the kernel knows what fits.
func TestWatchPathMTUs(t *testing.T) {
	h, router := newHost(t, "m"), newHost(t, "o")
	h.run(`echo 0 >/proc/sys/net/ipv6/conf/all/accept_dad
		ip link add eth0 type veth peer name eth0 netns ` + router.ns + `; ip link set eth0 up
		ip addr add 192.0.2.1/24 dev eth0; ip addr add 2001:db8::1/64 dev eth0 nodad; ip route add default via 192.0.2.2; ip -6 route add default via 2001:db8::2`)
	router.run(`echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding
		ip link set eth0 up; ip addr add 192.0.2.2/24 dev eth0; ip addr add 2001:db8::2/64 dev eth0 nodad
		ip link add far type veth peer name end; ip link set end up; ip link set far up mtu 1300
		ip addr add 203.0.113.1/24 dev far; ip addr add 2001:db8:1::1/64 dev far nodad
		ip neigh add 203.0.113.9 lladdr 02:00:00:00:00:09 dev far; ip neigh add 2001:db8:1::9 lladdr 02:00:00:00:00:09 dev far`)
	ctx, cancel := context.WithCancel(context.Background())
	told, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- kernel.WatchPathMTUs(ctx, h.namespace(), func() {
			select {
			case told <- struct{}{}:
			default:
			}
		})
	}()
	for _, to := range []string{"203.0.113.9", "2001:db8:1::9"} {
		a := netip.MustParseAddr(to)
		deadline := time.Now().Add(30 * time.Second)
		for heard := false; !heard; {
			if time.Now().After(deadline) {
				t.Fatalf("%s: not told", to)
			}
			_, _ = h.command("sh", "-c", "ip route flush cache; ip -6 route flush cache; ping -n -c1 -W1 -M do -s 1400 "+to).CombinedOutput()
			select {
			case <-told:
				heard = true
			case <-time.After(100 * time.Millisecond):
			}
		}
		paths, err := link.New(h.namespace()).Paths(link.Query{}, []netip.Addr{a})
		if err != nil || paths[a].MTU != 1300 {
			t.Errorf("%s: %+v, %v", to, paths[a], err)
		}
	}
	// Another ICMP error is none.
	_, _ = h.command("ping", "-n", "-c1", "-W1", "198.51.100.1").CombinedOutput()
	select {
	case <-told:
		t.Error("told of an error that is not about size")
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
