package main

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	away := []string{"--socket", filepath.Join(dir, "none.sock"), "--bpffs", filepath.Join(dir, "none")}
	for _, tc := range []struct {
		args string
		want int
	}{
		{"version", exitOK},
		{"--version", exitOK},
		{"--help", exitOK},
		{"nonsense", exitUsage},
		{"vrf lst", exitUsage},
		{"bgp bogus", exitUsage},
		{"completion foo", exitUsage},
		{"vrf", exitOK},
		{"status --nonsense", exitUsage},
		{"status word", exitUsage},
		{"version -o json", exitOK},
		{"version -o xml", exitUsage},
		{"cleanup --dry-run -o xml", exitUsage},
		{"adopt -o xml", exitUsage},
		{"adopt vrf-1001", exitUsage},
		{"vrf show", exitUsage},
		{"vrf show abc", exitUsage},
		{"vrf show 16777216", exitUsage},
		{"route list --vrf 0", exitUsage},
		{"explain 10.0.0.1 10.0.0.2", exitUsage},
		{"explain --vrf 1 10.0.0.1 fd00::1", exitUsage},
		{"trace --vrf 1 --proto sctp 10.0.0.1 10.0.0.2", exitUsage},
		{"trace --vrf 1 --dport 99999 10.0.0.1 10.0.0.2", exitUsage},
		{"trace --vrf 1 --length 9000 10.0.0.1 10.0.0.2", exitUsage},
		{"trace --vrf 1 --port vm 10.0.0.1 10.0.0.2", exitUsage},
		{"trace --port vm --from-vtep 192.0.2.1 10.0.0.1 10.0.0.2", exitUsage},
		{"trace --vrf 1 --to-vm 10.0.0.1 10.0.0.2", exitUsage},
		{"trace --port vm 10.0.0.1 fd00::2", exitUsage},
		{"lb explain", exitUsage},
		{"lb explain --vrf 1 tcp 10.0.0.1:1", exitUsage},
		{"lb explain --vrf 1 tcp 10.0.0.1:0 10.0.0.2:1", exitUsage},
		{"lb explain tcp 10.0.0.1:1 10.0.0.2:1", exitUsage},
		{"lb drain web 10.0.0.1:80 --weight 257", exitUsage},
		{"status", exitOffline},
		{"vrf list", exitOffline},
		{"bgp neighbors", exitOffline},
		{"diff", exitOffline},
		{"lb list", exitOffline},
		{"lb backends", exitOffline},
		{"lb sessions", exitOffline},
		{"lb vms", exitOffline},
		{"lb show 10.0.0.1", exitOffline},
		{"lb explain --vrf 1 tcp 10.0.0.1:1 10.0.0.2:1", exitOffline},
		{"lb drain web 10.0.0.1:80", exitOffline},
		{"underlay", exitOffline},
		{"explain --vrf 1 10.0.0.1 10.0.0.2", exitOffline},
	} {
		if got := run(t.Context(), append(slices.Clone(away), strings.Fields(tc.args)...)); got != tc.want {
			t.Errorf("sluicectl %s: exit code %d, want %d", tc.args, got, tc.want)
		}
	}
}

func TestOutputFormats(t *testing.T) {
	routes := []status.Route{{VNI: 1001, Prefix: netip.MustParsePrefix("fd00::/64"), Kind: "remote", Programmed: true, State: status.OK,
		NextHops: []intent.NextHop{{VTEP: netip.MustParseAddr("192.0.2.1"), VNI: 7, RouterMAC: intent.MAC{2, 0, 0, 0, 0, 1}}}}}
	for format, want := range map[output.Format]string{
		"table": "1001  fd00::/64  remote  192.0.2.1 vni 7 mac 02:00:00:00:00:01  yes         -          -",
		"json":  `"prefix": "fd00::/64"`,
		"yaml":  "prefix: fd00::/64",
	} {
		var b bytes.Buffer
		o := &options{output: format}
		if err := o.print(&b, routes, func(w io.Writer) error { return writeRoutes(w, routes) }); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("%s: no %q in\n%s", format, want, b.String())
		}
	}
	if err := (&options{output: "xml"}).print(&bytes.Buffer{}, routes, nil); !errors.As(err, new(*usageError)) {
		t.Error("an unknown format is taken")
	}
}

func TestStatusShowsBothMapsOfATable(t *testing.T) {
	var b bytes.Buffer
	s := status.Status{Tables: []status.Table{{Name: "served", Wanted: status.Known(5), Actual: 5, Maps: []status.MapFill{{Name: "known", Used: 2, Size: 10}, {Name: "served", Used: 3, Size: 10}}}}}
	if err := writeStatus(&b, s); err != nil {
		t.Fatal(err)
	}
	if want := "known 2/10, served 3/10"; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}

func TestStatusTellsWhyRowsStay(t *testing.T) {
	for _, tt := range []struct {
		row  status.Table
		want string
	}{
		{status.Table{Name: "routes", Held: "BGP is away"}, "  BGP is away\n"},
		{status.Table{Name: "backend-routes", Lingering: 2}, "  2 linger for sessions\n"},
		{status.Table{Name: "steering", Lingering: 1, Held: "OVN is away"}, "  1 linger for sessions; OVN is away\n"},
	} {
		var b bytes.Buffer
		if err := writeStatus(&b, status.Status{Tables: []status.Table{tt.row}}); err != nil || !strings.Contains(b.String(), tt.want) {
			t.Errorf("no %q in\n%s%v", tt.want, b.String(), err)
		}
	}
}

func TestSessionsTellThatTheyAreCut(t *testing.T) {
	for known, want := range map[int]string{1: "", 3: "2 more of 3 are not listed\n"} {
		var b bytes.Buffer
		if err := writeSessions(&b, status.Sessions{Sessions: []status.Session{{VNI: 1001, Protocol: intent.TCP}}, Total: known}); err != nil || strings.Contains(b.String(), "listed") != (want != "") || !strings.HasSuffix(b.String(), want) {
			t.Errorf("%d known: no %q in\n%s%v", known, want, b.String(), err)
		}
	}
}

func TestExplanationNamesTheMissingRow(t *testing.T) {
	e := status.NewExplanation(status.Query{VRF: 1001}, []status.Step{
		{Layer: status.LayerOVN, Object: "Port_Binding a", Found: true},
		{Layer: status.LayerOVN, Object: "Port_Binding b", Detail: "no VNI", Hint: "set one"},
	})
	var b bytes.Buffer
	if err := writeExplanation(&b, e); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MISSING", "The path is cut at: Port_Binding b. no VNI", "set one"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestUnderlayForPeopleAndPrograms(t *testing.T) {
	prefix, addr := netip.MustParsePrefix, netip.MustParseAddr
	u := status.Underlay{Install: true, Announcements: []status.UnderlayAnnouncement{
		{Prefix: prefix("192.0.2.1/32"), VTEP: true, Announced: true}, {Prefix: prefix("fd00::/64"), Error: "no session"},
	}, Routes: []status.UnderlayRoute{
		{Prefix: prefix("192.0.2.2/32"), State: status.UnderlayInstalled, Metric: 7, Source: addr("192.0.2.1"), Stale: true,
			Hops: intent.NewUnderlayHops(intent.UnderlayHop{Via: addr("fe80::2"), Device: "eth2"}, intent.UnderlayHop{Via: addr("fe80::1"), Device: "eth1"})},
		{Prefix: prefix("192.0.2.3/32"), State: status.UnderlayRefused, Reason: "connected"},
		{Prefix: prefix("fd00::3/128"), State: status.UnderlayError, Metric: 7, Hops: intent.NewUnderlayHops(intent.UnderlayHop{Via: addr("fe80::1"), Device: "eth1"}), Error: "of others"},
	}}
	var b bytes.Buffer
	print := func(format output.Format) string {
		b.Reset()
		if err := (&options{output: format}).print(&b, u, func(w io.Writer) error { return writeUnderlay(w, u) }); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for format, wants := range map[output.Format][]string{
		"table": {"not all neighbours have sent their routes", "192.0.2.1/32  VTEP    -", "fd00::/64     prefix  not announced: no session",
			"192.0.2.2/32  installed  fe80::1 dev eth1, fe80::2 dev eth2  192.0.2.1  7       stale",
			"192.0.2.3/32  refused    -                                   -          -       connected",
			"fd00::3/128   error      fe80::1 dev eth1                    -          7       of others"},
		"json": {`"inSync": false`, `"vtep": true`, `"via": "fe80::2"`, `"device": "eth2"`, `"metric": 7`, `"state": "refused"`, `"reason": "connected"`, `"error": "of others"`},
	} {
		out := print(format)
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", format, want, out)
			}
		}
	}
	if u = (status.Underlay{}); !strings.Contains(print("table"), "underlay.install.enabled") {
		t.Errorf("switched off: %s", b.String())
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 90 * time.Second: "1m", 3 * time.Hour: "3h", 72 * time.Hour: "3d"} {
		if got := age(time.Now().Add(-d)); got != want {
			t.Errorf("%v: %s, want %s", d, got, want)
		}
	}
	if age(time.Time{}) != "" {
		t.Error("an unknown time has an age")
	}
}

func TestTraceTellsWhyAPacketWasAnswered(t *testing.T) {
	for want, tr := range map[string]status.Trace{
		"Answered through sluice0, and not forwarded: packet_too_big": {Verdict: "reply", Drop: "packet_too_big", Interface: "sluice0"},
		"Leaves through sluice0.":                                     {Verdict: "redirect", Interface: "sluice0"},
		"Passes to Open vSwitch, for 10.0.0.1:80.":                    {Verdict: status.OnTap, Becomes: "10.0.0.1:80", Interface: "tap0"},
		"Passes to Open vSwitch, unchanged.":                          {Verdict: status.OnTap, Interface: "tap0"},
		"Passes to the VM, as from 10.9.0.1:80.":                      {Verdict: status.OnTap, Becomes: "10.9.0.1:80", Request: status.TraceRequest{ToVM: true}},
		"Answered through tap0.":                                      {Verdict: "reply", Interface: "tap0"},
		"Dropped: no_route":                                           {Verdict: "drop", Drop: "no_route"},
		"Leaves through vx to VTEP 192.0.2.1 with VNI 42.":            {Verdict: "redirect", Interface: "vx", VTEP: netip.MustParseAddr("192.0.2.1"), VNI: 42},
	} {
		var b bytes.Buffer
		if err := writeTrace(&b, tr); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestAnAnsweredPacketIsDropped(t *testing.T) {
	for _, row := range []struct {
		trace status.Trace
		want  bool
	}{
		{status.Trace{Verdict: "reply", Drop: "no_route"}, true},
		{status.Trace{Verdict: "drop", Drop: "hairpin"}, true},
		{status.Trace{Verdict: "redirect"}, false},
	} {
		if got := droppedIn(row.trace); got != row.want {
			t.Errorf("%+v: %t", row.trace, got)
		}
	}
}

func TestStatusNamesBGPWithoutASession(t *testing.T) {
	var b bytes.Buffer
	s := status.Status{Ready: true, Conditions: []status.Condition{{Name: "bgp", Reason: "no-session", Detail: "no session with 192.0.2.1"}}}
	if err := writeStatus(&b, s); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !strings.Contains(got, "ready, but BGP is not: no-session") || strings.Contains(got, "no problems") {
		t.Error(got)
	}
}

func TestAStalePathIsNotCut(t *testing.T) {
	e := status.NewExplanation(status.Query{VRF: 1001}, []status.Step{{Layer: status.LayerBGP, Object: "BGP session", Stale: true}})
	var b bytes.Buffer
	if err := writeExplanation(&b, e); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); !e.Works || !strings.Contains(got, "marked stale") || strings.Contains(got, "MISSING") {
		t.Error(got)
	}
}

// What only sluiced knows is a dash, and left out or null in JSON.
func TestOfflineAnswersSayWhatIsNotKnown(t *testing.T) {
	s := status.Status{Version: "1", Offline: true, Tables: []status.Table{{Name: "vrfs", Actual: 2}}}
	vrfs := []status.VRF{{VNI: 1001, State: status.Unknown, Local: 2}}
	routes := []status.Route{{VNI: 1001, Prefix: netip.MustParsePrefix("fd00::/64"), Kind: "local", Programmed: true, State: status.Unknown}}
	for _, row := range []struct {
		value      any
		people     func(io.Writer) error
		want       []string
		never      []string
		neverInAPI []string
	}{
		{s, func(w io.Writer) error { return writeStatus(w, s) },
			[]string{"sluiced does not answer", "vrfs   -       2       -"}, []string{"no problems", "not running"},
			[]string{"0001", "wanted", "failed", "started", "chassis", "role"}},
		{vrfs, func(w io.Writer) error { return writeVRFs(w, vrfs) }, []string{"1001  unknown  -"}, []string{"ok"}, []string{`"ok"`}},
		{routes, func(w io.Writer) error { return writeRoutes(w, routes) }, []string{"local  -      yes         -"}, nil, []string{"announced", `"ok"`}},
	} {
		for format, never := range map[output.Format][]string{output.People: row.never, output.JSON: row.neverInAPI, output.YAML: row.neverInAPI} {
			var b bytes.Buffer
			if err := (&options{output: format}).print(&b, row.value, row.people); err != nil {
				t.Fatal(err)
			}
			for _, w := range row.want {
				if format == output.People && !strings.Contains(b.String(), w) {
					t.Errorf("no %q in\n%s", w, b.String())
				}
			}
			for _, n := range never {
				if strings.Contains(b.String(), n) {
					t.Errorf("%s: %q in\n%s", format, n, b.String())
				}
			}
		}
	}
}

func TestVersionAndCleanupInJSON(t *testing.T) {
	var b bytes.Buffer
	root := newRoot()
	root.SetArgs([]string{"version", "-o", "json"})
	root.SetOut(&b)
	if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(b.String(), `"version": "`+sluice.Version()+`"`) {
		t.Errorf("%s, %v", b.String(), err)
	}
	for _, row := range []struct {
		answer   status.Cleanup
		complete bool
		people   string
		json     string
	}{
		{status.Cleanup{DryRun: true, Objects: []status.CleanupObject{{Object: "device x"}}}, true, "would remove device x\n", `"dryRun": true`},
		{status.Cleanup{Objects: []status.CleanupObject{{Object: "device x", Removed: true}, {Object: "y", Error: "busy"}}}, false, "removed device x\n", `"error": "busy"`},
		{status.Cleanup{Objects: []status.CleanupObject{}}, true, "nothing of Sluice is here\n", `"objects": []`},
		{status.Cleanup{Objects: []status.CleanupObject{}}, false, "", `"objects": []`},
	} {
		for format, want := range map[output.Format]string{output.People: row.people, output.JSON: row.json} {
			var b bytes.Buffer
			err := (&options{output: format}).print(&b, row.answer, func(w io.Writer) error { return writeCleanup(w, row.answer, row.complete) })
			if got := b.String(); err != nil || (format == output.People && got != want) || !strings.Contains(got, want) {
				t.Errorf("%s: %v, %q, want %q", format, err, got, want)
			}
		}
	}
}

func TestBothSayThatOVNForwardsItself(t *testing.T) {
	a, b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	e := status.NewExplanation(status.Query{VRF: 1, Src: a, Dst: b}, []status.Step{{Layer: status.LayerOVN, Object: "router r", Found: true}})
	e.InsideOVN = true
	tr := status.Trace{Request: status.TraceRequest{Src: a, Dst: b}, Verdict: status.InsideOVN}
	for _, write := range []func(io.Writer) error{
		func(w io.Writer) error { return writeExplanation(w, e) }, func(w io.Writer) error { return writeTrace(w, tr) },
	} {
		var out bytes.Buffer
		if err := write(&out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "OVN forwards from 10.0.0.1 to 10.0.0.2 itself; Sluice never sees the packets.") {
			t.Error(out.String())
		}
	}
	if !e.Works || droppedIn(tr) {
		t.Error("one of them says no")
	}
}

// Problems that are alike are counted, and none that is not is lost among them.
func TestAlikeProblemsAreCounted(t *testing.T) {
	var objects []status.Object
	for i := range 16 {
		objects = append(objects, status.Object{State: status.Error, Kind: "flow", Key: string(rune('a' + i)), Reason: "failed"})
	}
	objects = append(objects, status.Object{State: status.Error, Kind: "vrf", Key: "1001", Reason: "full"})
	var b bytes.Buffer
	if err := writeProblems(&b, objects); err != nil {
		t.Fatal(err)
	}
	// Two that read one row say the same of it.
	for _, source := range []string{"evpn", "clients"} {
		objects = append(objects, status.Object{Source: source, State: status.Error, Kind: "load-balancer", Key: "web", Reason: "bad-load-balancer", Error: "VIP x"})
	}
	b.Reset()
	if err := writeProblems(&b, objects); err != nil {
		t.Fatal(err)
	}
	if got := b.String(); strings.Count(got, "VIP x") != 1 || strings.Count(got, "flow") != mostAlike || !strings.Contains(got, "12 more") || !strings.Contains(got, "1001") {
		t.Error(got)
	}
}

// Nothing is removed where neither the configuration nor Open vSwitch is there.
func TestCleanupConfig(t *testing.T) {
	var notes bytes.Buffer
	dir := t.TempDir()
	cfg, found, err := cleanupConfig(&notes, filepath.Join(dir, "none.yaml"), false)
	if err != nil || found || cfg == nil || !strings.Contains(notes.String(), "none.yaml does not exist") {
		t.Errorf("%t, %v, %s", found, err, notes.String())
	}
	if _, _, err := cleanupConfig(&notes, filepath.Join(dir, "none.yaml"), true); err == nil {
		t.Error("a file that was asked for and is not there is none")
	}
	bad := filepath.Join(dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("roles: none\nmetadata: {template: 'http://a/{uuid}'}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := cleanupConfig(&notes, bad, true); err == nil || !strings.HasPrefix(err.Error(), bad+":2:22: metadata.template: ") {
		t.Errorf("error %v", err)
	}
	cfg.OVN.VSwitch = "unix:" + filepath.Join(dir, "db.sock")
	if err := cfg.LocalDatabase(); err == nil || !strings.Contains(err.Error(), "db.sock does not exist") {
		t.Errorf("error %v", err)
	}
}
