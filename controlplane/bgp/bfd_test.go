package bgp

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/bfd"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/frrtest"
)

// pathsSeen are the changes that BFD has told in this process.
var pathsSeen struct {
	mu   sync.Mutex
	list []string
}

func (s *speaker) pathsSeen() []string { return s.do(childCommand{}).Paths }

// childBFD runs a BFD speaker in the process of a BGP speaker, as the daemon does.
// stop ends it as the end of the daemon would.
func childBFD(raw string, s *GoBGP) (stop func(), err error) {
	cfg := bfd.Config{Changed: func(a netip.Addr, p bfd.Path) {
		s.PathChanged(a, p)
		pathsSeen.mu.Lock()
		defer pathsSeen.mu.Unlock()
		pathsSeen.list = append(pathsSeen.list, a.String()+" "+p.String())
	}}
	if raw == "" {
		return func() {}, nil
	}
	if err := json.Unmarshal([]byte(raw), &cfg.Peers); err != nil {
		return nil, err
	}
	b, err := bfd.New(cfg, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	return func() { b.TellEnd(); cancel(); <-ended }, nil
}

// withBFD starts a speaker with BFD for those neighbours that want it.
func withBFD(t testing.TB, ns string, cfg Config) *speaker {
	t.Helper()
	var peers []bfd.Peer
	for _, n := range cfg.Neighbors {
		if n.BFD != BFDOff {
			peers = append(peers, bfd.Peer{Neighbor: n.Address, Local: n.LocalAddress, Multihop: n.MultihopTTL > 1,
				Settings: bfd.Settings{MinTx: 100 * time.Millisecond, MinRx: 100 * time.Millisecond, Multiplier: 10}})
		}
	}
	raw, err := json.Marshal(peers)
	if err != nil {
		t.Fatal(err)
	}
	return startSpeakerIn(t, ns, cfg, childBFDEnv+"="+string(raw))
}

// bfdRouter is bgpd with zebra and bfdd.
type bfdRouter struct {
	*frr
	daemons *frrtest.Router
}

func startFRRWithBFD(t testing.TB, ns string, asn uint32, lines ...string) *bfdRouter {
	t.Helper()
	conf := fmt.Sprintf("router bgp %d\n bgp router-id 192.0.2.255\n no bgp ebgp-requires-policy\n no bgp default ipv4-unicast\n bgp graceful-restart\n%s", asn, strings.Join(lines, "\n"))
	r := frrtest.Start(t, ns, frrtest.Daemon{Name: "zebra"}, frrtest.Daemon{Name: "bfdd"}, frrtest.Daemon{Name: "bgpd", Config: conf})
	return &bfdRouter{frr: &frr{t: t, dir: r.Dir(), port: 179, cmd: r.Command("bgpd")}, daemons: r}
}

// bfdPeers is "show bfd peers json".
func (f *bfdRouter) bfdPeers() string { return string(f.daemons.VTY("bfdd", "show bfd peers json")) }

// A path that BFD loses ends the session at both ends, long before the hold time,
// over one hop and over two. A clean stop of BFD ends none.
func TestBFDWithFRR(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	near := startFRRWithBFD(t, c.mid, 64512, neighbor(nodeAddr4, 64512, "bfd 10 100 100"))
	far := startFRRWithBFD(t, c.peer, 64513, neighbor(nodeAddr6, 64512, "bfd 10 100 100", "ebgp-multihop 2"))
	s := withBFD(t, c.node, nodeConfig(1,
		Neighbor{Address: netip.MustParseAddr("198.51.100.254"), ASN: 64512, ConnectRetry: time.Second, BFD: BFDFollow},
		Neighbor{Address: netip.MustParseAddr(peerAddr6), ASN: 64513, ConnectRetry: time.Second, BFD: BFDFollow, MultihopTTL: 2}))
	sessions := func() []NeighborStatus { return s.do(childCommand{Status: true}).Status.Neighbors }
	up := func() bool {
		n := sessions()
		return n[0].State == stateEstablished && n[1].State == stateEstablished &&
			strings.Contains(near.bfdPeers(), `"status":"up"`) && strings.Contains(far.bfdPeers(), `"status":"up"`)
	}
	eventually(t, "sessions and BFD are up", up)

	c.ip("-n " + c.mid + " link set node down")
	cut := time.Now()
	eventually(t, "both sessions have ended", func() bool {
		n := sessions()
		return n[0].State != stateEstablished && n[1].State != stateEstablished
	})
	t.Logf("ended %s after the cut", time.Since(cut).Round(time.Millisecond))
	for _, n := range sessions() {
		if !strings.HasPrefix(n.LastError, "BFD has lost the path to the neighbour") || n.Flaps != 1 {
			t.Errorf("%s after %d flaps: %s", n.Address, n.Flaps, n.LastError)
		}
	}
	eventually(t, "FRR has ended its own", func() bool {
		return !strings.Contains(string(near.vtysh("show bgp neighbors "+nodeAddr4)), "BGP state = Established") &&
			!strings.Contains(string(far.vtysh("show bgp neighbors "+nodeAddr6)), "BGP state = Established")
	})
	c.ip("-n " + c.mid + " link set node up")
	c.ip("-n " + c.mid + " addr replace 2001:db8:51::fe/64 dev node nodad")
	eventually(t, "all is up again", up)

	// FRR switches BFD off: that ends no session.
	far.daemons.VTY("bfdd", "configure", "bfd", "peer "+nodeAddr6+" multihop local-address "+peerAddr6, "shutdown")
	eventually(t, "the speaker knows", func() bool { return slices.Contains(s.pathsSeen(), peerAddr6+" off") })
	k := key(1001, "10.10.0.0/24")
	s.do(childCommand{Policies: []childPolicy{red}, Set: []intent.RouteKey{k}})
	eventually(t, "the sessions go on", func() bool { return len(near.routes()) == 1 && len(far.routes()) == 1 })
	for _, n := range sessions() {
		if n.State != stateEstablished || n.Flaps != 1 {
			t.Errorf("%s: %s, %d flaps, %s", n.Address, n.State, n.Flaps, n.LastError)
		}
	}
}

// One end waits for BFD before BGP; a lost path leaves the routes that nobody else
// has as stale ones.
func TestBFDStrict(t *testing.T) {
	t.Parallel() // it mostly waits
	c := newChain(t)
	strict := nodeConfig(1, Neighbor{Address: netip.MustParseAddr(peerAddr4), ASN: 64513, ConnectRetry: time.Second, BFD: BFDStrict, MultihopTTL: 2})
	a := withBFD(t, c.node, strict)
	other := listening(2, 179, peerAddr4)
	other.ASN = 64513
	other.Neighbors = []Neighbor{{Address: netip.MustParseAddr(nodeAddr4), ASN: 64512, Passive: true, MultihopTTL: 2}}
	b := startSpeakerIn(t, c.peer, other)
	eventually(t, "the session is held", func() bool {
		n := a.neighbor()
		return n.State == "idle" && n.LastError == "bfd.strict holds the session down until BFD is up"
	})
	b.kill()
	other.Neighbors[0].BFD = BFDFollow
	b = withBFD(t, c.peer, other)
	k := key(1001, "10.10.0.0/24")
	for _, s := range []*speaker{a, b} {
		s.do(childCommand{Policies: []childPolicy{red}})
	}
	b.do(childCommand{Set: []intent.RouteKey{k}})
	eventually(t, "a session with BFD", a.established)
	eventually(t, "the route", func() bool { return len(a.hops(k)) == 1 })

	c.ip("-n " + c.mid + " link set peer down")
	eventually(t, "both ends have ended it", func() bool { return !a.established() && !b.established() })
	if n := a.neighbor(); !strings.HasPrefix(n.LastError, "BFD has lost the path to the neighbour") || n.PeerRestarting {
		t.Errorf("%+v", n)
	}
	eventually(t, "the route is stale", func() bool { return a.do(childCommand{Status: true}).Status.Stale == 1 })
	if n := a.deletes(); n != 0 {
		t.Errorf("%d routes were deleted", n)
	}
	c.ip("-n " + c.mid + " link set peer up")
	eventually(t, "the session is back", a.established)
	eventually(t, "the route is", func() bool { return a.do(childCommand{Status: true}).Status.Stale == 0 && len(a.hops(k)) == 1 })
	b.do(childCommand{StopBFD: true}) // AdminDown
	eventually(t, "the neighbour's BFD is off", func() bool { return slices.Contains(a.pathsSeen(), peerAddr4+" off") })
	if n := a.neighbor(); n.State != stateEstablished || n.Flaps != 1 {
		t.Errorf("BFD was switched off, and the session is %s after %d flaps", n.State, n.Flaps)
	}
}
