package loadbalancer_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// sessions are what 'lb sessions' lists.
func (w *world) sessions(node string) []status.Session {
	w.Helper()
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "lb", "sessions")
	var all status.Sessions
	if err = errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil || all.Total != len(all.Sessions) {
		w.Fatalf("%d of %d sessions: %v", len(all.Sessions), all.Total, err)
	}
	return all.Sessions
}

// session finds a client's session with a VIP.
func (w *world) session(node string, protocol intent.Protocol, client, vip netip.AddrPort) (status.Session, bool) {
	w.Helper()
	for _, s := range w.sessions(node) {
		if s.Protocol == protocol && s.Client == client && s.VIP == vip {
			return s, true
		}
	}
	return status.Session{}, false
}

// explained asks 'lb explain' for the backend of a session on a node without its entry, chosen, and
// for the one in this node's entry, known, if there is one; where is a VRF or a switch.
func (w *world) explained(node string, where []string, protocol string, client, vip netip.AddrPort) (chosen, known string) {
	w.Helper()
	argv := append([]string{w.sluicectl(), "-o", "json", "lb", "explain"}, where...)
	out, err := w.Exec(w.Context(), node, append(argv, protocol, client.String(), vip.String())...)
	var e status.VIPExplanation
	if err = errors.Join(err, json.Unmarshal([]byte(out), &e)); err != nil || e.Backend == nil {
		w.Fatalf("%s: %s (%v)", node, out, err)
	}
	if e.Session != nil {
		known = e.Session.String()
	}
	return intent.FormatEndpoint(e.Backend.Addr, e.Backend.Port), known
}

// number is that of a backend, from 0 on, by the name that it answers with.
func number(name string) int { return int(name[len(name)-1] - '1') }

// 'lb sessions' lists sessions with the backend that answered, and their state, and 'lb explain'
// has the same backend for them: of both protocols and families, of the fabric on both gateways, and
// of VMs on their own node and on another one's.
func TestSessions(t *testing.T) {
	w := shared(t)
	for _, a := range []netip.Addr{netip.MustParseAddr("10.99.0.40"), netip.MustParseAddr("fd00:99::40")} {
		at := netip.AddrPortFrom(a, vipUDP)
		w.onSwitches("udp", map[string][]string{at.String(): endpoints(a, backend.UDPPort)})
		w.webOnSwitches(a)
		for _, c := range []struct {
			asking
			where []string
			// also is another node that has the Maglev table, and no entry of the session.
			also string
		}{
			{fabric, []string{"--vrf", "1001"}, "a2"},
			{vms[0], []string{"--switch", lab.SwitchName("red", "net")}, "a1"},
			{vms[1], []string{"--switch", lab.SwitchName("red", "other")}, ""},
		} {
			t.Run(fmt.Sprintf("%s of %s", a, c.name), func(t *testing.T) {
				w := &world{T: t, Lab: w.Lab}
				for _, p := range []struct {
					name  string
					kind  intent.Protocol
					at    netip.AddrPort
					port  uint16
					state string
				}{{"udp", intent.UDP, at, backend.UDPPort, "opening"}, {"tcp", intent.TCP, netip.AddrPortFrom(a, vipHTTP), backend.HTTPPort, "ending"}} {
					w.eventually("an answer by "+p.name, func() error {
						_, _, err := w.ask(c.name, p.name, a)
						return err
					})
					if c.also != "" {
						w.eventually(c.also+" has the VIP for "+p.name, func() error {
							_, err := w.Exec(w.Context(), c.also, append(append([]string{w.sluicectl(), "lb", "explain"}, c.where...), p.name, netip.AddrPortFrom(c.address(a), 1).String(), p.at.String())...)
							return err
						})
					}
					list, err := w.asks(c.name, p.name, a, 10)
					if err != nil {
						t.Fatal(err)
					}
					for _, got := range list {
						want := endpoints(a, p.port)[number(got.name)]
						f, ok := w.session(c.node, p.kind, got.from, p.at)
						if !ok || f.Backend.String() != want || f.State != p.state {
							t.Errorf("%s answered %s by %s: %+v (%t)", got.name, got.from, p.name, f, ok)
						}
						if chosen, known := w.explained(c.node, c.where, p.name, got.from, p.at); chosen != want || known != want {
							t.Errorf("%s answered %s by %s, and 'lb explain' says %s, known %q", got.name, got.from, p.name, chosen, known)
						}
						if c.also == "" {
							continue
						}
						if chosen, known := w.explained(c.also, c.where, p.name, got.from, p.at); chosen != want || known != "" {
							t.Errorf("%s answered %s by %s, and 'lb explain' of %s says %s, known %q", got.name, got.from, p.name, c.also, chosen, known)
						}
					}
				}
				open := 0
				w.streams(c.name, a, 3)
				for _, f := range w.sessions(c.node) {
					if f.VIP == netip.AddrPortFrom(a, vipHTTP) && f.State == "open" && f.Client.Addr() == c.address(a) {
						open++
					}
				}
				if open != 3 {
					t.Errorf("%d of 3 connections are open", open)
				}
			})
		}
	}
}
