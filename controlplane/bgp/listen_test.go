package bgp

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// listening is node i with an open port on the given addresses.
func listening(i byte, port uint16, addrs ...string) Config {
	cfg := nodeConfig(i)
	cfg.ListenPort = int(port)
	for _, a := range addrs {
		cfg.ListenAddresses = append(cfg.ListenAddresses, netip.MustParseAddr(a))
	}
	return cfg
}

// A port that is taken, whichever of several, leaves nothing behind (TestMain
// looks for goroutines), is told in the status and is not waited for at the end.
func TestPortTaken(t *testing.T) {
	for _, family := range []struct{ network, addr, other string }{{"tcp4", "127.0.0.1", "127.0.0.2"}, {"tcp6", "::1", "127.0.0.2"}} {
		l, err := net.Listen(family.network, net.JoinHostPort(family.addr, "0"))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		port := l.Addr().(*net.TCPAddr).AddrPort().Port()
		for _, addrs := range [][]string{{family.addr}, {family.other, family.addr}, {"::"}, nil} {
			cfg := listening(1, port, addrs...)
			cfg.Neighbors = []Neighbor{{Address: netip.MustParseAddr("127.0.0.9"), ASN: 64512}}
			cfg.RestartTime, cfg.DeferralTime = time.Millisecond, time.Millisecond
			s, err := New(cfg, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			s.PoliciesComplete()
			ended := make(chan error, 1)
			go func() { ended <- s.Run(context.Background()) }()
			status := func() Status {
				st, err := s.Status(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				return st
			}
			eventually(t, "the status names the port", func() bool { return strings.Contains(status().Problem, "address already in use") })
			eventually(t, "imports are not waited for without end", func() bool { return status().InSync })
			s.Stop(false)
			if err := <-ended; err != nil {
				t.Error(err)
			}
			free, err := net.Listen("tcp", net.JoinHostPort(family.other, l.Addr().String()[strings.LastIndex(l.Addr().String(), ":")+1:]))
			if err != nil {
				t.Fatalf("listening on %v left a socket open: %v", addrs, err)
			}
			_ = free.Close()
		}
	}
}

// Sessions start when the port becomes free; an unspecified address is both
// families'.
func TestPortBecomesFree(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).AddrPort().Port()
	cfg := listening(1, port, "::")
	for _, a := range []string{"127.0.0.12", "::1"} {
		cfg.Neighbors = append(cfg.Neighbors, Neighbor{Address: netip.MustParseAddr(a), ASN: 64512, Passive: true})
	}
	a := startSpeaker(t, cfg)
	a.do(childCommand{Policies: []childPolicy{red}, Set: nil})
	eventually(t, "the port is taken", func() bool { return a.do(childCommand{Status: true}).Status.Problem != "" })
	to := func(i byte, peer, local string) *speaker {
		n := Neighbor{Address: netip.MustParseAddr(peer), ASN: 64512, Port: port, ConnectRetry: time.Second}
		if local != "" {
			n.LocalAddress = netip.MustParseAddr(local)
		}
		return startSpeaker(t, nodeConfig(i, n))
	}
	b, c := to(2, "127.0.0.1", "127.0.0.12"), to(3, "::1", "")
	_ = l.Close()
	eventually(t, "sessions over IPv4 and IPv6", func() bool { return b.established() && c.established() })
	if st := a.do(childCommand{Status: true}).Status; st.Problem != "" {
		t.Errorf("the status still says %q", st.Problem)
	}
}
