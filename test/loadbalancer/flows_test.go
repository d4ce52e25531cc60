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

// flows are what 'lb flows' lists.
func (w *world) flows(node string) []status.Flow {
	w.Helper()
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "lb", "flows")
	var all status.Flows
	if err = errors.Join(err, json.Unmarshal([]byte(out), &all)); err != nil || all.Total != len(all.Flows) {
		w.Fatalf("%d of %d flows: %v", len(all.Flows), all.Total, err)
	}
	return all.Flows
}

// flow finds a client's flow to a VIP.
func (w *world) flow(node string, protocol intent.Protocol, client, vip netip.AddrPort) (status.Flow, bool) {
	w.Helper()
	for _, f := range w.flows(node) {
		if f.Protocol == protocol && f.Client == client && f.VIP == vip {
			return f, true
		}
	}
	return status.Flow{}, false
}

// explained is the backend that 'lb explain' has for a flow where it is not known, and where
// this node knows that it goes; where is a VRF or a switch.
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

// 'lb flows' lists flows with the backend that answered, and their state, and 'lb explain' has
// the same backend for them: of both protocols and families, of the fabric on both gateways, and
// of VMs on their own node and on another one's.
func TestFlows(t *testing.T) {
	w := shared(t)
	for _, a := range []netip.Addr{netip.MustParseAddr("10.99.0.40"), netip.MustParseAddr("fd00:99::40")} {
		at := netip.AddrPortFrom(a, vipUDP)
		w.onSwitches("udp", map[string][]string{at.String(): endpoints(a, backend.UDPPort)})
		w.webOnSwitches(a)
		for _, c := range []struct {
			asking
			where []string
			// also is another node that has the table, and does not know the flow.
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
						f, ok := w.flow(c.node, p.kind, got.from, p.at)
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
				for _, f := range w.flows(c.node) {
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
