package dryrun

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What only BGP could tell is counted, and shown neither as missing nor as to go.
func TestImportsAreUnknownToADryRun(t *testing.T) {
	n := node{tables: tables.New(tables.Drivers{}, tables.Sources{}, tables.Options{Status: status.NewRegistry(nil), Dry: true})}
	var p status.Plan
	got := n.known([]reconcile.Change{
		{Table: "vrfs", Op: reconcile.OpAdd, Key: "1001", New: "Index:1"},
		{Table: "vteps", Op: reconcile.OpDelete, Key: "192.0.2.1", Held: true},
		{Table: "routes", Op: reconcile.OpDelete, Key: "1001 10.0.0.1/32", Held: true},
		{Table: "routes", Op: reconcile.OpDelete, Key: "1001 10.0.0.2/32", Held: true},
		{Table: "routes", Op: reconcile.OpDelete, Key: "7 10.0.0.3/32"},
		{Table: "policies", Op: reconcile.OpAdd, Key: "1001"},
		{Table: "announcements", Op: reconcile.OpAdd, Key: "1001 10.1.0.0/24", Held: true, Why: "waiting"},
	}, &p)
	if len(got) != 2 || got[0].Key != "1001" || got[1].Key != "7 10.0.0.3/32" || got[1].Action != "delete" {
		t.Errorf("changes %+v", got)
	}
	if len(p.Unknown) != 2 || p.Unknown[0].Table != "vteps" || p.Unknown[0].Rows != 1 || p.Unknown[1].Table != "routes" || p.Unknown[1].Rows != 2 {
		t.Errorf("unknown %+v", p.Unknown)
	}
}

func TestPlanForPeople(t *testing.T) {
	p := status.Plan{Version: "1.0", UnderlayMTU: 1500,
		Identity: status.Identity{Chassis: "a1", Role: reason.RoleGateway, RoleReason: "a port", VTEP: netip.MustParseAddr("192.0.2.1")},
		Changes: []status.Change{
			{Table: "map", Key: "hosts_v1", Action: "add", Wanted: "5 rows"}, {Table: "vrfs", Key: "7", Action: "delete", Actual: "Index:3"}},
		Unknown:       []status.UnknownRows{{Table: "routes", Rows: 12, Why: "imported"}},
		Announcements: []status.PlannedRoute{{VNI: 1001, Prefix: netip.MustParsePrefix("fd00::/64"), Gateway: "cr-lrp-red"}},
		Neighbors:     []string{"192.0.2.250", "eth1"},

		UnderlayAnnouncements: []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("fd00::1/128")},
		Problems:              []status.Object{{Kind: "gateway", Key: "cr-lrp-x", State: status.Error, Reason: "bad-vni", Error: "no number"}},
	}
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"chassis a1: role gateway (a port)", "+  map    hosts_v1  -        5 rows", "-  vrfs   7         Index:3",
		"1 to add, 0 to change, 1 to remove. Nothing was changed.", "routes: 12 imported", "Routes that would be announced to 192.0.2.250, eth1, or are already (1):",
		"1001  fd00::/64  cr-lrp-red", "to 192.0.2.250, eth1 as plain unicast: 192.0.2.1/32, fd00::1/128.", "error: gateway cr-lrp-x: bad-vni: no number"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := Write(&b, status.Plan{Identity: status.Identity{Role: "none"}}); err != nil || strings.Contains(b.String(), "announced") {
		t.Errorf("a node that forwards nothing: %v\n%s", err, b.String())
	}
}

// Without a database a dry run says so at once, and leaves nothing behind.
func TestDryRunWithoutDatabase(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.StateDir, cfg.OVN.VSwitch = filepath.Join(dir, "state"), "unix:"+filepath.Join(dir, "db.sock")
	cfg.Dataplane.BPFFS = filepath.Join(dir, "bpffs")
	cfg.BGP.Neighbors = []config.Neighbor{{Address: netip.MustParseAddr("192.0.2.1"), PasswordFile: filepath.Join(dir, "secret")}}
	cfg.HTTP.WebConfig = filepath.Join(dir, "web.yaml")
	var notes bytes.Buffer
	_, err := Run(t.Context(), cfg, "1.0", &notes)
	for _, want := range []string{"db.sock does not exist: start Open vSwitch", "password of neighbor 192.0.2.1", "http.webConfig: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in the error %v", want, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 || notes.Len() > 0 {
		t.Errorf("left behind: %v, %v, %s", left, err, &notes)
	}
}

// A database that nobody serves is named while it is waited for, and given up.
func TestDryRunWaitsWithWords(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	path := filepath.Join(dir, "db.sock")
	if err := os.WriteFile(path, nil, 0o600); err != nil { // no socket: refused
		t.Fatal(err)
	}
	cfg.StateDir, cfg.OVN.VSwitch, cfg.Dataplane.BPFFS = dir, "unix:"+path, filepath.Join(dir, "bpffs")
	d, err := newDryRun(cfg, "1.0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Follower.Run(ctx) }()
	defer func() { cancel(); <-done }()
	for deadline := time.Now().Add(time.Minute); len(d.hopeless(time.Hour)) == 0 && time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	for _, errs := range [][]error{d.hopeless(time.Hour), d.unread()} {
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "database Open_vSwitch") || strings.Contains(err.Error(), "at  ") {
			t.Errorf("errors %v", errs)
		}
	}
	if errs := d.hopeless(time.Second); len(errs) != 0 {
		t.Errorf("given up after a second: %v", errs)
	}
}
