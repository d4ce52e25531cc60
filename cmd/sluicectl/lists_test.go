package main

import (
	"bytes"
	"errors"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// A list without entries is one, in JSON, too.
func TestEmptyListsAreLists(t *testing.T) {
	rows := map[intent.RouteKey]ebpf.RouteRow{intent.NewHostKey(1002, netip.MustParseAddr("2001:db8::1")): {}}
	routes, err := pinnedRoutes(rows, 1001, func(intent.VNI) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	for what, value := range map[string]any{
		`[]`:            routes,
		`"steps": []`:   status.NewExplanation(status.Query{}, nil),
		`"neighbors": `: status.BGP{Neighbors: []status.Neighbor{}},
	} {
		var b bytes.Buffer
		if err := (&options{output: output.JSON}).print(&b, value, nil); err != nil || !strings.Contains(b.String(), what) || strings.Contains(b.String(), "null") {
			t.Errorf("%s: %v\n%s", what, err, b.String())
		}
	}
	if _, err := pinnedRoutes(rows, 1003, notPinned); err == nil {
		t.Error("no error for a VRF that is not there")
	}
	if routes, err := pinnedRoutes(rows, 0, func(intent.VNI) error { return errors.New("asked") }); err != nil || len(routes) != 1 {
		t.Errorf("all: %v, %v", routes, err)
	}
}

// The columns of EVPN say nothing of a session for plain unicast alone.
func TestNeighborsShowPlainUnicast(t *testing.T) {
	var b bytes.Buffer
	err := writeNeighbors(&b, status.BGP{ASN: 64512, Neighbors: []status.Neighbor{
		{Address: netip.MustParseAddr("192.0.2.1"), Families: []string{"evpn"}, Received: 9, Rejected: map[string]int{"own-as": 3, "malformed-attributes": 1}},
		{Address: netip.MustParseAddr("2001:db8::1"), Families: []string{"ipv6"}, UnicastReceived: 12, UnicastSent: 3},
	}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.Contains(lines[2], "UNICAST") || strings.Contains(lines[3], " in, ") || !strings.Contains(lines[4], "12 in, 3 out") ||
		!strings.Contains(lines[3], "1 malformed-attributes, 3 own-as") {
		t.Errorf("table\n%s", b.String())
	}
}

// Which way the sessions start is said where it is the slow one.
func TestDialsIsSaid(t *testing.T) {
	for _, dials := range []bool{false, true} {
		var b bytes.Buffer
		if err := writeNeighbors(&b, status.BGP{ASN: 64512, Dials: dials}); err != nil || strings.Contains(b.String(), "dials") != dials {
			t.Errorf("%v\n%s", err, b.String())
		}
	}
}

func TestStaleRoutesOfTheUnderlayHaveAReason(t *testing.T) {
	u := status.Underlay{Install: true, InSync: true, Routes: []status.UnderlayRoute{
		{Prefix: netip.MustParsePrefix("192.0.2.3/32"), State: status.UnderlayRefused, Reason: "connected", Stale: true},
		{Prefix: netip.MustParsePrefix("2001:db8::3/128"), State: status.UnderlayInstalled, Stale: true},
	}}
	var b bytes.Buffer
	if err := writeUnderlay(&b, u); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if !strings.HasSuffix(lines[1], "stale, connected") || !strings.HasSuffix(lines[2], "stale") {
		t.Errorf("table\n%s", b.String())
	}
}

func TestIsVIP(t *testing.T) {
	v4 := status.VIP{Address: netip.MustParseAddr("10.99.0.1"), Port: 80}
	v6 := status.VIP{Address: netip.MustParseAddr("fd00:99::1"), Port: 80}
	for text, want := range map[string][2]bool{
		"10.99.0.1": {true, false}, "10.99.0.1:80": {true, false}, "10.99.0.1:81": {}, "::ffff:10.99.0.1": {true, false},
		"fd00:99::1": {false, true}, "FD00:0099:0::1": {false, true}, "[fd00:99::1]:80": {false, true}, "[fd00:99:0:0::1]:80": {false, true}, "[fd00:99::1]": {false, true},
		"[fd00:99::1]:443": {}, "web": {}, "": {},
	} {
		if got := [2]bool{isVIP(v4, text), isVIP(v6, text)}; got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// An error of a question that the pinned maps cannot answer, or without pinned maps, has no note that they
// are read, and names the socket.
func TestErrorsWithoutSluicedHaveNoNote(t *testing.T) {
	dir := t.TempDir()
	for _, args := range []string{"bgp neighbors", "bgp routes --vrf 1001", "explain --vrf 1001 10.0.0.1 10.0.0.2", "diff", "vrf list", "vrf show 1001", "status"} {
		var notes bytes.Buffer
		root := newRoot()
		root.SetArgs(append([]string{"--socket", filepath.Join(dir, "none.sock"), "--bpffs", filepath.Join(dir, "none")}, strings.Fields(args)...))
		root.SetErr(&notes)
		if err := root.ExecuteContext(t.Context()); !errors.Is(err, errOffline) || !strings.Contains(err.Error(), "none.sock") || notes.Len() > 0 {
			t.Errorf("%s: %v, notes %q", args, err, notes.String())
		}
	}
}
