package loadbalancer_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// sender is a client with a session that sends ten times a second and never pauses.
type sender struct {
	what string
	conn net.Conn
	mu   sync.Mutex
	sent int
	from []string // the backends that have answered, one after the other
}

// sends begins a session with a VIP, by a port of the client's.
func (w *world) sends(client asking, protocol string, vip netip.AddrPort) *sender {
	w.Helper()
	s := &sender{what: fmt.Sprintf("%s by %s to %s", client.name, protocol, vip)}
	err := netns.Named(w.node(client.name).Netns).Do(func() (err error) {
		s.conn, err = net.DialTimeout(protocol, vip.String(), lab.Patience())
		return err
	})
	if err != nil {
		w.Fatalf("%s: %v", s.what, err)
	}
	done, ended := make(chan struct{}), sync.WaitGroup{}
	w.Cleanup(func() { close(done); _ = s.conn.Close(); ended.Wait() })
	// A backend answers with lines, of which the name is the first word. That of a connection sends
	// them all the time, and reads no more.
	words := "hello\n"
	if protocol == "tcp" {
		if _, err := io.WriteString(s.conn, "GET /stream HTTP/1.1\r\nHost: vip\r\n\r\n"); err != nil {
			w.Fatalf("%s: %v", s.what, err)
		}
		words = "x"
	}
	ended.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			_, _ = io.WriteString(s.conn, words) // what is wrong is told by what answers
			s.mu.Lock()
			s.sent++
			s.mu.Unlock()
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	ended.Go(func() {
		b := make([]byte, 4096)
		for {
			n, err := s.conn.Read(b)
			s.mu.Lock()
			for _, word := range strings.Fields(string(b[:n])) {
				if strings.HasPrefix(word, "be") {
					s.from = append(s.from, word)
				}
			}
			s.mu.Unlock()
			if err != nil && (protocol == "tcp" || errors.Is(err, net.ErrClosed)) {
				return
			}
		}
	})
	return s
}

func (s *sender) state() (sent int, from []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.from
}

func (s *sender) port() uint16 {
	return netip.MustParseAddrPort(s.conn.LocalAddr().String()).Port()
}

// leaving is a form in which a VIP leaves OVN, and comes again.
type leaving struct {
	name   string
	gone   func(row, vip string) []string
	comes  func(row, vip, backends, protocol string) []string
	beside bool // the row has another VIP of the address
}

// on holds a load balancer to what onSwitches holds it to, or takes it off there.
func on(verb, row string) []string {
	return []string{"lr-lb-" + verb, router, row, "--", "ls-lb-" + verb, lab.SwitchName("red", "net"), row, "--", "ls-lb-" + verb, lab.SwitchName("red", "other"), row}
}

var leavingForms = []leaving{
	{name: "the load balancer is deleted", gone: func(row, _ string) []string { return []string{"lb-del", row} },
		comes: func(row, vip, backends, protocol string) []string {
			return append([]string{"lb-add", row, vip, backends, protocol, "--"}, on("add", row)...)
		}},
	{name: "the VIP leaves vips, and another one of its address stays", beside: true, gone: func(row, vip string) []string { return []string{"lb-del", row, vip} },
		comes: func(row, vip, backends, protocol string) []string {
			return []string{"lb-add", row, vip, backends, protocol}
		}},
	{name: "router and switches lose the load balancer", gone: func(row, _ string) []string { return on("del", row) },
		comes: func(row, vip, backends, protocol string) []string {
			return append([]string{"--may-exist", "lb-add", row, vip, backends, protocol, "--"}, on("add", row)...)
		}},
}

// A session ends with its VIP though its client never pauses: when the VIP is there again with other
// backends, what is sent reaches one of these, from the fabric and from VMs.
func TestSessionsEndWithVIP(t *testing.T) {
	w := shared(t)
	const members = 2 // before; the others are members after
	type session struct {
		*sender
		client   asking
		protocol string
		vip      netip.AddrPort
	}
	var all []session
	protocols := []string{"udp", "tcp"}
	ports := map[string][2]uint16{"udp": {vipUDP, backend.UDPPort}, "tcp": {vipHTTP, backend.HTTPPort}}
	var gone, again []string
	step := func(steps *[]string, argv []string) {
		if len(*steps) > 0 {
			*steps = append(*steps, "--")
		}
		*steps = append(*steps, argv...)
	}
	clients := append([]asking{fabric}, vms...)
	for i, form := range leavingForms {
		for _, format := range []string{"10.99.0.%d", "fd00:99::%d"} {
			a := netip.MustParseAddr(fmt.Sprintf(format, 60+i))
			for _, p := range protocols {
				vip, list := netip.AddrPortFrom(a, ports[p][0]), endpoints(a, ports[p][1])
				row := "lb " + p + " " + vip.String()
				w.onSwitches(p, map[string][]string{vip.String(): list[:members]})
				if form.beside {
					w.nb("lb-add", row, intent.FormatEndpoint(a, vip.Port()+1), strings.Join(list, ","), p)
				}
				step(&gone, form.gone(row, vip.String()))
				step(&again, form.comes(row, vip.String(), strings.Join(list[members:], ","), p))
				for _, client := range clients {
					if p == "tcp" && client.name != fabric.name {
						continue
					}
					w.eventually(fmt.Sprintf("eBPF balances %s by %s for %s", vip, p, client.name), func() error { return w.balanced(client, p, vip) })
					w.answered(client.name, p, a)
					all = append(all, session{w.sends(client, p, vip), client, p, vip})
				}
			}
		}
	}
	kinds := map[string]intent.Protocol{"udp": intent.UDP, "tcp": intent.TCP}
	member := func(name string, again bool) bool { return number(name) >= members == again }
	for _, s := range all {
		labtest.Eventually(t, w.Lab, "an answer to "+s.what, func() error {
			if _, from := s.state(); len(from) == 0 || !member(from[len(from)-1], false) {
				return fmt.Errorf("%v", from)
			}
			return nil
		})
		if _, ok := w.session(s.client.node, kinds[s.protocol], netip.AddrPortFrom(s.client.address(s.vip.Addr()), s.port()), s.vip); !ok {
			t.Errorf("%s has no session of eBPF", s.what)
		}
	}
	w.nb(gone...)
	for _, client := range clients {
		w.eventually(client.node+" has none of the sessions", func() error {
			for _, f := range w.sessions(client.node) {
				if slices.ContainsFunc(all, func(s session) bool { return s.vip == f.VIP }) {
					return fmt.Errorf("%+v", f)
				}
			}
			return nil
		})
	}
	for _, s := range all {
		began, _ := s.state()
		labtest.Eventually(t, w.Lab, "packets of "+s.what, func() error {
			if sent, _ := s.state(); sent < began+20 {
				return fmt.Errorf("%d", sent-began)
			}
			return nil
		})
	}
	w.nb(again...)
	for _, s := range all {
		_, before := s.state()
		if s.protocol == "udp" {
			w.eventually("an answer to "+s.what+" by a backend of the VIP that came again", func() error {
				if _, from := s.state(); len(from) == len(before) || !member(from[len(from)-1], true) {
					return fmt.Errorf("%v", from[max(0, len(from)-5):])
				}
				return nil
			})
			continue
		}
		w.eventually("eBPF balances "+s.vip.String()+" again for "+s.client.name, func() error { return w.balanced(s.client, s.protocol, s.vip) })
		w.answered(s.client.name, s.protocol, s.vip.Addr())
	}
	for _, s := range all {
		began, before := s.state()
		labtest.Eventually(t, w.Lab, "more packets of "+s.what, func() error {
			if sent, _ := s.state(); sent < began+5 {
				return fmt.Errorf("%d", sent-began)
			}
			return nil
		})
		if _, from := s.state(); slices.ContainsFunc(from[len(before):], func(name string) bool { return !member(name, true) }) {
			t.Errorf("%s is answered by %v, which are no members", s.what, slices.Compact(from[len(before):]))
		}
	}
}

// balanced tells whether eBPF balances a VIP for a client.
func (w *world) balanced(client asking, protocol string, vip netip.AddrPort) error {
	w.Helper()
	list, err := w.vips(client.node)
	for _, v := range list {
		if (v.Switch == "") == (client.name == fabric.name) && (v.Switch == "" || v.Switch == lab.SwitchName("red", client.network)) &&
			netip.AddrPortFrom(v.Address, v.Port) == vip && v.Protocol.String() == protocol && v.Path == "ebpf" && v.State == "ok" {
			return nil
		}
	}
	return fmt.Errorf("%+v (%w)", list, err)
}
