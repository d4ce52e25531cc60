package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bgp"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// listenConfig describes the BGP neighbour of the bench.
type listenConfig struct {
	ASN         uint32
	Local, Peer netip.Addr
	VNIs        []intent.VNI
}

// event is a route that came (Up) or went, and when the neighbour knew.
type event struct {
	Key intent.RouteKey
	Up  bool
	At  int64 // Unix nanoseconds
}

// runListener is a BGP neighbour that waits for the daemon's session and writes
// one event a route.
func runListener(ctx context.Context, text string, out io.Writer) error {
	var cfg listenConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	s, err := bgp.New(bgp.Config{
		ASN: cfg.ASN, SystemID: "bench", VTEP4: cfg.Local, ListenPort: 179, ListenAddresses: []netip.Addr{cfg.Local},
		Neighbors:  []bgp.Neighbor{{Address: cfg.Peer, ASN: cfg.ASN, Passive: true}},
		PeerLinger: -1,
	}, slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	if err != nil {
		return err
	}
	policies := map[intent.VNI]intent.VRFPolicy{}
	for i, v := range cfg.VNIs {
		policies[v] = intent.VRFPolicy{VNI: v, Index: uint16(i + 1), AutoImport: true}
	}
	for _, err := range s.SetPolicies(policies) {
		return err
	}
	failed := make(chan error, 1)
	go func() { failed <- s.Run(ctx) }()
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	err = s.Watch(ctx, func(u bgp.ImportUpdate) {
		now := time.Now().UnixNano()
		for _, r := range u.Upserts {
			_ = enc.Encode(event{r.Key, true, now})
		}
		for _, k := range u.Deletes {
			_ = enc.Encode(event{k, false, now})
		}
		_ = w.Flush()
	})
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, <-failed)
}

// neighbour is the other end of runListener: what the daemon announces now.
type neighbour struct {
	routes map[intent.RouteKey]struct{}
	events chan event
	// stop ends the process and waits for its end.
	stop func()
}

func (n *neighbour) read(ctx context.Context, in io.Reader) {
	defer close(n.events)
	for d := json.NewDecoder(in); ; {
		var e event
		if err := d.Decode(&e); err != nil {
			return
		}
		select {
		case n.events <- e:
		case <-ctx.Done():
			return
		}
	}
}

var errNeighbourGone = errors.New("the BGP neighbour of the bench ended")

// next takes one event into account.
func (n *neighbour) next(ctx context.Context) (event, error) {
	select {
	case e, ok := <-n.events:
		if !ok {
			return e, errNeighbourGone
		}
		if e.Up {
			n.routes[e.Key] = struct{}{}
		} else {
			delete(n.routes, e.Key)
		}
		return e, nil
	case <-ctx.Done():
		return event{}, context.Cause(ctx)
	}
}

// waitFor waits until a route is there, or is not, and says when that was.
func (n *neighbour) waitFor(ctx context.Context, k intent.RouteKey, up bool) (time.Time, error) {
	for {
		e, err := n.next(ctx)
		if err != nil {
			return time.Time{}, fmt.Errorf("waiting for %s (announced: %t): %w", k, up, err)
		}
		if e.Key == k && e.Up == up {
			return time.Unix(0, e.At), nil
		}
	}
}

// waitAll waits until all keys are announced.
func (n *neighbour) waitAll(ctx context.Context, keys []intent.RouteKey) (time.Time, error) {
	missing := map[intent.RouteKey]struct{}{}
	for _, k := range keys {
		if _, ok := n.routes[k]; !ok {
			missing[k] = struct{}{}
		}
	}
	at := time.Now()
	for len(missing) > 0 {
		e, err := n.next(ctx)
		if err != nil {
			return at, fmt.Errorf("%d of %d routes are not announced: %w", len(missing), len(keys), err)
		}
		if e.Up {
			at = time.Unix(0, e.At)
			delete(missing, e.Key)
		}
	}
	return at, nil
}
