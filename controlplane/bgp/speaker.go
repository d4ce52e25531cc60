package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/osrg/gobgp/v3/pkg/server"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Speaker is a node's BGP.
type Speaker interface {
	// Run holds the sessions until ctx ends or Stop is called. It is called once.
	// Everything else may be called before and meanwhile; what is set before Run
	// is announced as the sessions start.
	Run(ctx context.Context) error
	// Stop ends Run. Graceful leaves the neighbours to keep our routes for their
	// restart time; otherwise every session is closed with a CEASE notification.
	// The end of Run's ctx is a graceful stop.
	Stop(graceful bool)
	// SetPolicies replaces the VRFs' policies. A policy that cannot be used is an
	// error under its VNI and counts as absent.
	SetPolicies(policies map[intent.VNI]intent.VRFPolicy) map[intent.VNI]error
	// Set replaces the whole set of announcements and sends the difference.
	Set(ctx context.Context, announcements map[intent.RouteKey]Announcement) map[intent.RouteKey]error
	// Update changes some announcements. Errors are one per failed key; an
	// announcement whose VRF has no policy yet fails with reconcile.ErrNotReady
	// and is sent when the policy comes.
	Update(ctx context.Context, upserts []Announcement, deletes []intent.RouteKey) map[intent.RouteKey]error
	// Ready tells a restarting speaker (Config.Restarting) that what it announced
	// before is announced again, so that sessions may start. Set implies it;
	// whoever uses Update alone has to call it.
	Ready()
	// Watch calls fn with the import tables and then with each change, from its
	// own goroutine, until ctx ends.
	Watch(ctx context.Context, fn func(ImportUpdate)) error
	// Status reads the present state.
	Status(ctx context.Context) (Status, error)
	// Routes lists every Type-5 route received and sent.
	Routes(ctx context.Context) ([]RouteInfo, error)
	// Explainer tells what BGP contributes to a path.
	status.Explainer
}

// GoBGP is the Speaker that runs GoBGP in the process.
type GoBGP struct {
	cfg Config
	log *slog.Logger
	now func() time.Time

	outMu  sync.Mutex // guards out and server
	out    *outbox
	server *server.BgpServer

	in imports // its mu guards sync and retry too
	// sync is each neighbour's End-of-RIB state.
	sync map[netip.Addr]*neighborSync
	// retry is when a session that hit its prefix limit is tried again.
	retry map[netip.Addr]time.Time

	ends *sessionEnds
	// rearm wakes tick when a withdrawal begins to settle.
	rearm     chan struct{}
	ready     chan struct{}
	readyOnce sync.Once
	stop      chan bool
	stopOnce  sync.Once
}

var _ Speaker = (*GoBGP)(nil)

type neighborSync struct {
	established bool
	endOfRIB    bool // in the present session
	done        bool // once, or the restart time is over
}

// New checks the configuration and does no I/O.
func New(cfg Config, log *slog.Logger) (*GoBGP, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("BGP configuration: %w", err)
	}
	cfg = cfg.withDefaults()
	own := func(a netip.Addr) bool { return a.IsValid() && (a == cfg.VTEP4 || a == cfg.VTEP6) }
	s := &GoBGP{
		cfg: cfg, log: log, now: time.Now, out: newOutbox(cfg),
		in:    imports{rib: newRIB(own, cfg.VTEPLinger, cfg.PeerLinger), feeds: set[*feed]{}},
		sync:  map[netip.Addr]*neighborSync{},
		retry: map[netip.Addr]time.Time{},
		ends:  newSessionEnds(cfg),
		rearm: make(chan struct{}, 1),
		ready: make(chan struct{}), stop: make(chan bool, 1),
	}
	for _, n := range cfg.Neighbors {
		s.sync[n.Address.WithZone("")] = &neighborSync{}
	}
	s.in.inSync = len(cfg.Neighbors) == 0
	return s, nil
}

// Run implements Speaker.
func (s *GoBGP) Run(ctx context.Context) error {
	watching, cancel := context.WithCancel(context.Background())
	defer cancel()
	srv, err := s.start(ctx, watching)
	if err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	running, end := context.WithCancel(groupCtx)
	defer end()
	graceful := true
	group.Go(func() error { return s.startNeighbors(running, srv) })
	group.Go(func() error { return s.tick(running, srv) })
	group.Go(func() error {
		select {
		case graceful = <-s.stop:
		case <-running.Done():
		}
		end()
		return nil
	})
	err = group.Wait()
	return errors.Join(err, s.leave(srv, graceful))
}

// Stop implements Speaker.
func (s *GoBGP) Stop(graceful bool) {
	s.stopOnce.Do(func() { s.stop <- graceful })
}

// SetPolicies implements Speaker.
func (s *GoBGP) SetPolicies(policies map[intent.VNI]intent.VRFPolicy) map[intent.VNI]error {
	good, failed := usable(policies)
	s.in.mu.Lock()
	s.in.rib.setPolicies(good)
	s.publishLocked()
	s.in.mu.Unlock()

	s.outMu.Lock()
	defer s.outMu.Unlock()
	keys := s.out.setPolicies(maps.Clone(good))
	for k, err := range s.sendLocked(context.Background(), keys) {
		failed[k.VNI] = errors.Join(failed[k.VNI], err)
	}
	return failed
}

// usable sorts out the policies that would break others or cannot go on the wire.
func usable(policies map[intent.VNI]intent.VRFPolicy) (map[intent.VNI]intent.VRFPolicy, map[intent.VNI]error) {
	good, failed := map[intent.VNI]intent.VRFPolicy{}, map[intent.VNI]error{}
	index := map[uint16]intent.VNI{}
	for vni, p := range policies {
		switch other, taken := index[p.Index]; {
		case vni != p.VNI || vni == 0 || vni > intent.MaxVNI:
			failed[vni] = fmt.Errorf("VRF %d: a VNI is 1..%d", vni, intent.MaxVNI)
			continue
		case p.Index == 0:
			failed[vni] = fmt.Errorf("VRF %d has no index for its route distinguisher", vni)
			continue
		case taken && other < vni:
			failed[vni] = fmt.Errorf("VRF %d has the index %d of VRF %d", vni, p.Index, other)
			continue
		case taken:
			failed[other] = fmt.Errorf("VRF %d has the index %d of VRF %d", other, p.Index, vni)
			delete(good, other)
		}
		index[p.Index], good[vni] = vni, p
	}
	return good, failed
}

// Set implements Speaker.
func (s *GoBGP) Set(ctx context.Context, announcements map[intent.RouteKey]Announcement) map[intent.RouteKey]error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	failed := map[intent.RouteKey]error{}
	var keys []intent.RouteKey
	for vni, vrf := range s.out.wanted {
		for p := range vrf {
			k := intent.RouteKey{VNI: vni, Prefix: p}
			if _, ok := announcements[k]; !ok {
				keys = append(keys, k)
			}
		}
	}
	for _, k := range keys {
		s.out.unwant(k)
	}
	for k, a := range announcements {
		a.Key = k
		if err := s.out.want(a); err != nil {
			failed[k] = err
		}
		keys = append(keys, k)
	}
	s.localLocked(keys)
	maps.Copy(failed, s.sendLocked(ctx, keys))
	s.Ready()
	return failed
}

// Ready implements Speaker.
func (s *GoBGP) Ready() { s.readyOnce.Do(func() { close(s.ready) }) }

// Update implements Speaker.
func (s *GoBGP) Update(ctx context.Context, upserts []Announcement, deletes []intent.RouteKey) map[intent.RouteKey]error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	failed := map[intent.RouteKey]error{}
	keys := make([]intent.RouteKey, 0, len(upserts)+len(deletes))
	for _, k := range deletes {
		s.out.unwant(k)
		keys = append(keys, k)
	}
	for _, a := range upserts {
		if err := s.out.want(a); err != nil {
			failed[a.Key] = err
		}
		keys = append(keys, a.Key)
	}
	s.localLocked(keys)
	maps.Copy(failed, s.sendLocked(ctx, keys))
	return failed
}

// localLocked tells the import side what this node announces itself. The caller
// holds outMu; in.mu is always taken after it.
func (s *GoBGP) localLocked(keys []intent.RouteKey) {
	s.in.mu.Lock()
	defer s.in.mu.Unlock()
	for _, k := range keys {
		_, wanted := s.out.wanted[k.VNI][k.Prefix]
		s.in.rib.setLocal(k, wanted)
	}
	s.publishLocked()
}

// Watch implements Speaker.
func (s *GoBGP) Watch(ctx context.Context, fn func(ImportUpdate)) error { return s.in.watch(ctx, fn) }

// Announcements is the speaker as the last driver of a reconcile.Pipeline.
func (s *GoBGP) Announcements() reconcile.Driver[intent.RouteKey, intent.Announcement] {
	return driver{speaker: s, listed: map[intent.RouteKey]intent.GatewayKey{}}
}
