package bgp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	api "github.com/osrg/gobgp/v3/api"
	"github.com/osrg/gobgp/v3/pkg/server"
	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/controlplane/bgp/engine"
	"github.com/ovn-sluice/sluice/controlplane/bgp/wire"
	"github.com/ovn-sluice/sluice/controlplane/underlay"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// GoBGP is a node's BGP, spoken by GoBGP in the process.
type GoBGP struct {
	cfg Config
	log *slog.Logger
	now func() time.Time

	outMu  sync.Mutex // guards out, server, dials and problem
	out    *outbox
	server paths
	// dials: the server takes no connections, but dials, so that sessions start later.
	dials bool
	// problem is why there is no server yet.
	problem    string
	unicastOut unicastOut

	in imports // its mu guards sync and retry too
	// sync is each neighbour's state, by its address with the zone.
	sync map[netip.Addr]*neighborSync
	// links are the neighbours that are found on links, by their names.
	links map[string]*linkNeighbor
	// nodeLinks are the node's, as LinksChanged last told.
	nodeLinks []underlay.Link
	unicastIn unicastIn
	handles   *engine.Handles
	// retry is when a session is tried again that hit its prefix limit, or a
	// neighbour that the BGP server did not take.
	retry map[netip.Addr]time.Time

	connections *wire.Connections
	ends        *sessionEnds
	paths       pathChanges
	// rearm wakes tick when a withdrawal begins to settle.
	rearm    loop.Signal
	stop     chan bool
	stopOnce sync.Once

	ready, unicastReady, policiesComplete *signal
	// finished are the neighbours, by their names, that may have this node's End-of-RIB; in.mu
	// guards it. endings has sendEnds look at it.
	finished set[string]
	endings  loop.Signal
	// leaving: Run ends, and the sessions with it.
	leaving atomic.Bool
	// accepted has the server take connections; nil: it does not.
	accepted chan<- *net.TCPConn
}

// paths is the BGP server as far as routes and the state of sessions go.
type paths interface {
	AddPath(context.Context, *api.AddPathRequest) (*api.AddPathResponse, error)
	DeletePath(context.Context, *api.DeletePathRequest) error
	ListPeer(context.Context, *api.ListPeerRequest, func(*api.Peer)) error
}

type neighborSync struct {
	config Neighbor
	// added: the BGP server has the neighbour, at handle; disabled: no connection with it
	// may be made.
	added, disabled bool
	// withheld: the server has to send its End-of-RIB once more, when all is announced.
	withheld bool
	handle   netip.AddrPort
	// restarted is until when the neighbour is told of this node's restart; zero: not set.
	restarted time.Time
	// session is the state that the server told last.
	session     sessionState
	established bool
	endOfRIB    bool // in the present session
	done        bool // once, or the restart time is over
	// wrongAS: it is in the node's own AS, which an external one may not be.
	wrongAS bool
	// unicastEnds are the plain unicast families of which the neighbour has sent
	// all in the present session; unicastDone is as done.
	unicastEnds Families
	unicastDone bool
	// flaps counts how often the session was lost.
	flaps uint32
	// path is what BFD last said.
	path bfd.Path
	// local is this end's address in the latest session; invalid before the first.
	local netip.Addr
	// on is the link that the session ends with; lostLink names the one that a session which is
	// to end had.
	on       sessionLink
	lostLink string
	// lostPath: BFD has lost the path of a session that is to end.
	lostPath bool
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
		links: map[string]*linkNeighbor{}, unicastIn: newUnicastIn(), unicastOut: newUnicastOut(),
		retry: map[netip.Addr]time.Time{}, handles: &engine.Handles{},
		ends:  newSessionEnds(cfg),
		paths: pathChanges{news: map[netip.Addr]pathNews{}, wake: loop.NewSignal()},
		rearm: loop.NewSignal(),
		stop:  make(chan bool, 1), ready: newSignal(), unicastReady: newSignal(), policiesComplete: newSignal(),
		finished: set[string]{}, endings: loop.NewSignal(),
	}
	s.out.highest = s.highest
	s.connections = wire.New(log, s.asOthersSee(), s.connection)
	s.in.rib.limits = cfg.VRFs
	s.in.rib.only4, s.in.rib.only6 = !cfg.VTEP6.IsValid(), !cfg.VTEP4.IsValid()
	for _, n := range cfg.Neighbors {
		if n.Interface != "" {
			s.links[n.Interface] = newLinkNeighbor(n)
			continue
		}
		s.sync[n.Address] = &neighborSync{config: n}
	}
	s.syncedLocked()
	return s, nil
}

// Run holds the sessions until ctx ends or Stop is called. It is called once.
// Everything else may be called before and meanwhile; what is set before Run is
// announced as the sessions start. A port that is taken is waited for.
func (s *GoBGP) Run(ctx context.Context) error {
	watching, cancel := context.WithCancel(context.Background())
	defer cancel()
	group, groupCtx := errgroup.WithContext(ctx)
	running, end := context.WithCancel(groupCtx)
	defer end()
	graceful := true
	group.Go(func() error {
		select {
		case graceful = <-s.stop:
		case <-running.Done():
		}
		end()
		return nil
	})
	var srv *server.BgpServer
	group.Go(func() (err error) {
		if !s.awaitPort(running) {
			return nil
		}
		if srv, err = s.start(running, watching); err != nil {
			return err
		}
		group.Go(func() error { return s.startNeighbors(running, srv) })
		group.Go(func() error { return s.followPaths(running, srv) })
		group.Go(func() error { return s.sendEnds(running, srv) })
		return s.tick(running, srv)
	})
	err := group.Wait()
	if srv == nil {
		s.connections.Close(0)
		return err
	}
	return errors.Join(err, s.leave(srv, graceful))
}

// Stop ends Run. Graceful leaves the neighbours to keep our routes for their
// restart time; otherwise every session is closed with a CEASE notification. The
// end of Run's ctx is a graceful stop.
func (s *GoBGP) Stop(graceful bool) {
	s.stopOnce.Do(func() { s.stop <- graceful })
}

// SetPolicies replaces the VRFs' policies. A policy that cannot be used is an
// error under its VNI and counts as absent. Of two VRFs with one index the one
// that has it already keeps it, else the one with the lower VNI.
func (s *GoBGP) SetPolicies(policies map[intent.VNI]intent.VRFPolicy) map[intent.VNI]error {
	s.outMu.Lock()
	defer s.outMu.Unlock()
	good, failed := usable(policies, s.out.policies)
	s.in.mu.Lock()
	s.in.rib.setPolicies(good)
	s.publishLocked()
	s.in.mu.Unlock()
	keys := s.out.setPolicies(maps.Clone(good))
	for k, err := range s.sendLocked(context.Background(), keys) {
		failed[k.VNI] = errors.Join(failed[k.VNI], err)
	}
	return failed
}

// usable sorts out the policies that would break others, such as those in use, or
// cannot go on the wire.
func usable(policies, inUse map[intent.VNI]intent.VRFPolicy) (map[intent.VNI]intent.VRFPolicy, map[intent.VNI]error) {
	good, failed := map[intent.VNI]intent.VRFPolicy{}, map[intent.VNI]error{}
	index := map[uint16]intent.VNI{}
	keeps := func(vni intent.VNI) bool { return policies[vni].Index == inUse[vni].Index }
	for vni, p := range policies {
		switch other, taken := index[p.Index]; {
		case vni != p.VNI || vni == 0 || vni > intent.MaxVNI:
			failed[vni] = fmt.Errorf("VRF %d: a VNI is 1..%d", vni, intent.MaxVNI)
			continue
		case p.Index == 0:
			failed[vni] = fmt.Errorf("VRF %d has no index for its route distinguisher", vni)
			continue
		case taken && (keeps(other) && !keeps(vni) || keeps(other) == keeps(vni) && other < vni):
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

// Update changes some announcements. Errors are one per failed key; an
// announcement whose VRF has no policy yet fails with reconcile.ErrNotReady and is
// sent when the policy comes.
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

// Watch calls fn with the import tables and then with each change, from its own
// goroutine, until ctx ends.
func (s *GoBGP) Watch(ctx context.Context, fn func(ImportUpdate)) error { return s.in.watch(ctx, fn) }

// Announcements is the speaker as the last driver of a reconcile.Pipeline.
func (s *GoBGP) Announcements() reconcile.Driver[intent.RouteKey, intent.Announcement] {
	return driver{speaker: s, listed: map[intent.RouteKey]listed{}}
}
