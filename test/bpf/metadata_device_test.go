package bpf_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
)

// Two machines with one address each are who they are, over both hooks, at the same
// time and from the same port; a restart of the daemon is not noticed.
func TestMetadataDevices(t *testing.T) {
	for _, hook := range tapHooks {
		t.Run(hook.String(), func(t *testing.T) {
			s := newSite(t, hook)
			s.serve("proxy", proxyListens...)
			s.together(40000)
			if err := s.taps.Close(); err != nil {
				t.Fatal(err)
			}
			s.together(41000) // without a process
			s.in("node", s.start)
			s.together(42000)
			for _, vm := range []string{"vm1", "vm2"} {
				for _, family := range families {
					if err := s.ping(vm, family); err != nil {
						t.Errorf("%s, echo of IPv%d: %v", vm, family, err)
					}
				}
			}
			c, err := s.taps.Counters()
			if err != nil {
				t.Fatal(err)
			}
			for name, n := range c {
				if used := strings.HasPrefix(name, "steered") || strings.HasPrefix(name, "replied") || strings.HasPrefix(name, "answered"); used != (n > 0) && name != "dropped_reply" {
					t.Errorf("%s: %d packets", name, n)
				}
			}
		})
	}
}

// together has both machines ask at once, from the same ports.
func (s *site) together(first uint16) {
	s.t.Helper()
	var all sync.WaitGroup
	for i := range uint16(10) {
		for vm := range siteNumbers {
			for _, family := range families {
				all.Go(func() { s.isAnswered(vm, family, first+i) })
			}
		}
	}
	all.Wait()
}

// Large bodies go both ways, whoever computes the checksums and cuts the segments.
func TestMetadataLargeBodies(t *testing.T) {
	for _, offloads := range []string{"on", "off"} {
		t.Run("offloads "+offloads, func(t *testing.T) {
			s := newSite(t, pinned.HookAuto)
			s.serve("proxy", proxyListens...)
			for _, d := range [][2]string{{"node", "md0"}, {"proxy", "md1"}, {"node", "tapvm1"}, {"vm1", "eth0"}} {
				command(t, fmt.Sprintf("ip netns exec %s ethtool -K %s rx %[3]s tx %[3]s sg %[3]s tso %[3]s gso %[3]s gro %[3]s", s.names[d[0]], d[1], offloads))
			}
			for _, family := range families {
				got, err := s.ask("vm1", family, 0, http.MethodPost, "/", strings.NewReader(strings.Repeat("x", largeBody)))
				if err != nil || !strings.HasSuffix(got, fmt.Sprintf(" %d", largeBody)) {
					t.Errorf("IPv%d: the proxy got %q, %v", family, got, err)
				}
				got, err = s.ask("vm1", family, 0, http.MethodGet, "/large", nil)
				if err != nil || len(got) != largeBody {
					t.Errorf("IPv%d: %d bytes came back, %v", family, len(got), err)
				}
			}
			for _, what := range []string{"proxy", "vm1"} {
				if n := s.badSums(what); n != 0 {
					t.Errorf("%s: %d segments had a wrong checksum", what, n)
				}
			}
		})
	}
}

// badSums counts the TCP segments with a wrong checksum of a namespace.
func (s *site) badSums(what string) int {
	s.t.Helper()
	var text []byte
	s.in(what, func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	var names []string
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case words[0] != "Tcp:":
		case names == nil:
			names = words
		default:
			for i, name := range names {
				if name == "InCsumErrors" {
					var n int
					if _, err := fmt.Sscan(words[i], &n); err != nil {
						s.t.Fatal(err)
					}
					return n
				}
			}
		}
	}
	s.t.Fatalf("no count of checksums in %s", text)
	return 0
}

// Without a sign of life of the proxy a request goes where it went without Sluice, and
// with one it comes back.
func TestMetadataFallsBack(t *testing.T) {
	for _, hook := range tapHooks {
		t.Run(hook.String(), func(t *testing.T) {
			s := newSite(t, hook)
			s.serve("proxy", proxyListens...)
			s.serve("legacy", "169.254.169.254:80")
			s.isAnswered("vm1", 4, 0)
			if err := s.beat.Stop(); err != nil {
				t.Fatal(err)
			}
			// The answer to ARP is still remembered, and nobody behind the bridge has that address.
			s.commands("ip -n " + s.names["vm1"] + " neigh flush dev eth0")
			if got, err := s.ask("vm1", 4, 0, http.MethodGet, "/", nil); err != nil || !strings.HasPrefix(got, "legacy 10.0.0.5:") {
				t.Errorf("without the proxy: %q, %v", got, err)
			}
			if err := s.beat.Beat(); err != nil {
				t.Fatal(err)
			}
			s.isAnswered("vm1", 4, 0)
			// A machine that has no row (any more) is served as before, too.
			if err := s.taps.Remove(taps.Source{IfIndex: s.index["tapvm1"], MAC: vmGuest, Addr: addr(guest4), Number: siteNumbers["vm1"][0]}); err != nil {
				t.Fatal(err)
			}
			if got, err := s.ask("vm1", 4, 0, http.MethodGet, "/", nil); err != nil || !strings.HasPrefix(got, "legacy 10.0.0.5:") {
				t.Errorf("without a row: %q, %v", got, err)
			}
			s.in("node", func() error { return s.taps.Detach(s.index["tapvm1"]) })
			if got, err := s.ask("vm1", 4, 0, http.MethodGet, "/", nil); err != nil || !strings.HasPrefix(got, "legacy 10.0.0.5:") {
				t.Errorf("without the program: %q, %v", got, err)
			}
		})
	}
}

// A guest that asks while nobody listens is not told so, and is answered when somebody does.
func TestMetadataProxyRestarts(t *testing.T) {
	s := newSite(t, pinned.HookAuto)
	for _, family := range families {
		before, err := s.taps.Counters()
		if err != nil {
			t.Fatal(err)
		}
		type result struct {
			c   net.Conn
			err error
		}
		asked := make(chan result, 1)
		go func() {
			c, err := s.dial("vm1", family, 0)
			asked <- result{c, err}
		}()
		s.until("the reset is dropped", func() bool {
			now, err := s.taps.Counters()
			return err == nil && now["dropped_reset"] > before["dropped_reset"]
		})
		stop := s.serve("proxy", proxyListens...)
		r := <-asked
		if r.err != nil {
			t.Errorf("IPv%d: %v", family, r.err)
		} else {
			r.c.Close()
		}
		stop()
	}
}
