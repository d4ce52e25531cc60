package ra

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

const (
	// again is between two attempts to open the socket, and between two
	// advertisements while the ends get to know each other.
	again = time.Second
	// steady is between two advertisements later.
	steady = 10 * time.Second
	// eager is how many advertisements are sent in quick succession.
	eager = 5
)

// Run advertises this node on a link and calls heard with the address, its zone
// being the link, of each router that advertises itself there, time and again,
// until ctx ends. changed tells that the link is another one, has gone or is back: without it
// that shows a while later. waiting is told why the link cannot be used now, nil once it can;
// both are called from one goroutine each.
func Run(ctx context.Context, link string, changed <-chan struct{}, heard func(netip.Addr), waiting func(error)) error {
	for ctx.Err() == nil {
		s, err := open(ctx, link)
		if err == nil {
			waiting(nil)
			err = s.run(ctx, link, changed, heard)
		}
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			waiting(err)
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(again):
		}
	}
	return ctx.Err()
}

// run ends with ctx or when the link is not the one any more that the socket was
// opened for.
func (s *socket) run(ctx context.Context, link string, changed <-chan struct{}, heard func(netip.Addr)) error {
	group, ctx := errgroup.WithContext(ctx)
	wake := loop.NewSignal() // an advertisement is due at once
	var quick atomic.Int32
	quick.Store(eager)
	group.Go(func() error {
		<-ctx.Done()
		return s.conn.Close()
	})
	group.Go(func() error { return s.listen(link, heard, wake, &quick) })
	group.Go(func() error { return s.talk(ctx, link, changed, wake, &quick) })
	return group.Wait()
}

func (s *socket) listen(link string, heard func(netip.Addr), wake loop.Signal, quick *atomic.Int32) error {
	known := netip.Addr{}
	for {
		k, from, err := s.receive()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("router discovery on %s: %w", link, err)
		}
		if k == advertisement {
			heard(from.WithZone(link))
		}
		// A router that is new may not have heard of this node: it has been
		// restarted, or the cable plugged in elsewhere.
		if k == solicitation || from != known {
			quick.Store(eager)
			wake.Send()
		}
		if k == advertisement {
			known = from
		}
	}
}

func (s *socket) talk(ctx context.Context, link string, changed, wake <-chan struct{}, quick *atomic.Int32) error {
	if err := s.send(solicit(s.mac), allRouters); err != nil {
		return fmt.Errorf("soliciting routers on %s: %w", link, err)
	}
	last := time.Time{}
	for {
		// RFC 4861 section 6.2.6 wants three seconds between multicast
		// advertisements; routers of data centres ask for quicker ones, and a link
		// with two ends bears them.
		pause := steady
		if quick.Load() > 0 {
			pause = again
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Until(last.Add(pause))):
		case <-changed:
		case <-wake:
			if time.Since(last) < again/10 {
				continue
			}
		}
		switch i, err := net.InterfaceByName(link); {
		case err != nil:
			return fmt.Errorf("link %s: %w", link, err)
		case i.Index != s.index:
			return fmt.Errorf("link %s is another one now", link)
		case i.Flags&net.FlagUp == 0:
			return fmt.Errorf("link %s is down", link)
		}
		if err := s.send(advertise(s.mac), allNodes); err != nil {
			return fmt.Errorf("advertising on %s: %w", link, err)
		}
		last = time.Now()
		if quick.Load() > 0 {
			quick.Add(-1)
		}
	}
}
