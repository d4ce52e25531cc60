package kernel

import (
	"context"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// routeGroups are the multicast groups of rtnetlink with all that a lookup depends on. The
// kernel tells of no IPv4 route that goes with its link, its address or its next hop object.
var routeGroups = []uint{
	unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE,
	unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_NEXTHOP,
}

// WatchRoutes calls changed when the result of a route lookup may have changed, until ctx
// ends, and at first: several changes may be one call. It is called once or more for each
// change, in quick succession when many routes change, and has to be quick itself.
func WatchRoutes(ctx context.Context, ns netns.Namespace, changed func()) error {
	for ctx.Err() == nil {
		// As in Watch: what happened between two subscriptions is not known.
		if err := routeSubscription(ctx, ns, changed); err != nil {
			return err
		}
		loop.Sleep(ctx, watchPause)
	}
	return nil
}

// routeSubscription ends without an error when the kernel ends it.
func routeSubscription(ctx context.Context, ns netns.Namespace, changed func()) error {
	var socket *nl.NetlinkSocket
	err := ns.Do(func() (err error) {
		socket, err = nl.Subscribe(unix.NETLINK_ROUTE, routeGroups...)
		return err
	})
	if err != nil {
		return fmt.Errorf("following routes: %w", err)
	}
	stop := context.AfterFunc(ctx, socket.Close)
	defer func() {
		if stop() {
			socket.Close()
		}
	}()
	changed()
	for {
		if _, _, err := socket.Receive(); err != nil {
			return nil
		}
		changed()
	}
}
