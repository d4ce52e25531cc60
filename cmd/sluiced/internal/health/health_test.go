package health

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A setting that this OVN does nothing with is named.
func TestSettingWithoutEffect(t *testing.T) {
	for _, tt := range []struct {
		learned config.Switch
		dynamic bool
		want    int
	}{{config.SwitchOff, false, 0}, {config.SwitchOn, false, 1}, {config.SwitchOn, true, 0}} {
		c := config.Default()
		c.EVPN.LearnedRoutes = tt.learned
		got := withoutEffect(c, ovn.Status{DynamicRouting: tt.dynamic})
		if len(got) != tt.want || tt.want == 1 && (got[0].Key != "evpn.learnedRoutes" || got[0].State != status.Warning) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// That Nova is asked without a secret is told for as long as it is so.
func TestSettingWithoutSecret(t *testing.T) {
	c := config.Default()
	for _, tt := range []struct {
		backend config.Backend
		file    string
		want    int
	}{{config.BackendNova, "", 1}, {config.BackendNova, "/s", 0}, {config.BackendFiles, "", 0}, {config.BackendNone, "", 0}} {
		c.Metadata.Backend, c.Metadata.Nova.SecretFile = tt.backend, tt.file
		if got := doubtful(c, ovn.Status{}); len(got) != tt.want || tt.want > 0 && (got[0].Reason != reason.NoSecret || got[0].State != status.Warning) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// TestDatabaseConditions: a database has one condition, whatever is wrong with
// it, and its mistakes are no other's.
func TestDatabaseConditions(t *testing.T) {
	session := func(database string, connected bool) ovsdb.Status {
		return ovsdb.Status{Database: database, Connected: connected, Endpoint: "unix:" + database}
	}
	behind := func(connected bool) ovsdb.Status {
		s := session("OVN_Southbound", connected)
		s.Behind = "takes no writes"
		return s
	}
	wrong := errors.New("ovn-remote is no endpoint")
	local := databaseCondition{true, "in-sync", "unix:Open_vSwitch"}
	for name, row := range map[string]struct {
		status ovn.Status
		want   map[string]databaseCondition
	}{
		"in sync": {
			ovn.Status{InSync: ovn.InSync{SB: true, VSwitch: true, NB: true},
				Sessions: []ovsdb.Status{session("Open_vSwitch", true), session("OVN_Southbound", true)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {true, "in-sync", "unix:OVN_Southbound"}},
		},
		"a wrong remote while the old session is in sync": {
			ovn.Status{InSync: ovn.InSync{SB: true, VSwitch: true, NB: true}, SBErr: wrong,
				Sessions: []ovsdb.Status{session("Open_vSwitch", true), session("OVN_Southbound", true)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {false, "misconfigured", wrong.Error()}},
		},
		"a wrong Northbound remote, never followed": {
			ovn.Status{InSync: ovn.InSync{SB: true, VSwitch: true}, NBErr: wrong,
				Sessions: []ovsdb.Status{session("Open_vSwitch", true), session("OVN_Southbound", true)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {true, "in-sync", "unix:OVN_Southbound"}, "nb": {false, "misconfigured", wrong.Error()}},
		},
		"lost, and one that still reads": {
			ovn.Status{InSync: ovn.InSync{VSwitch: true},
				Sessions: []ovsdb.Status{session("Open_vSwitch", true), session("OVN_Southbound", false), session("OVN_Northbound", true)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {false, "disconnected", "forwarding is unchanged"}, "nb": {false, "syncing", "unix:OVN_Northbound"}},
		},
		"passed over, as it may be behind": {
			ovn.Status{InSync: ovn.InSync{VSwitch: true}, Sessions: []ovsdb.Status{session("Open_vSwitch", true), behind(false)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {false, "behind", "forwarding is unchanged"}},
		},
		"used, though it may be behind": {
			ovn.Status{InSync: ovn.InSync{VSwitch: true, SB: true}, Sessions: []ovsdb.Status{session("Open_vSwitch", true), behind(true)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {true, "older", "unix:OVN_Southbound; takes no writes"}},
		},
		"away since the start, and remembered": {
			ovn.Status{InSync: ovn.InSync{VSwitch: true, Recalled: true}, Recalled: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
				Sessions: []ovsdb.Status{session("Open_vSwitch", true), session("OVN_Northbound", false)}},
			map[string]databaseCondition{"vswitchd": local, "sb": {false, "starting", "there is no endpoint: set external_ids:ovn-remote in Open_vSwitch, or ovn.sb"},
				"nb": {false, "disconnected", "its content saved at 2026-01-02T03:04:05Z is used; forwarding is unchanged"}},
		},
		"nothing has answered since the start": {
			ovn.Status{Sessions: []ovsdb.Status{session("Open_vSwitch", false)}},
			map[string]databaseCondition{"vswitchd": {false, "disconnected", "forwarding is unchanged"},
				"sb": {false, "starting", "waits for the component vswitchd: external_ids:ovn-remote in Open_vSwitch is the endpoint"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := databaseConditions(row.status); !maps.Equal(got, row.want) {
				t.Errorf("conditions %+v\nwant %+v", got, row.want)
			}
		})
	}
}

// A database that reads further rows stays ready for a while, unless it was lost.
func TestConditionsWhileFurtherRowsAreRead(t *testing.T) {
	good, syncing, lost := databaseCondition{true, "in-sync", "tcp:a"}, databaseCondition{false, "syncing", "tcp:a"}, databaseCondition{false, "disconnected", ""}
	start := time.Now()
	s := settledConditions{}
	for i, step := range []struct {
		after     time.Duration
		got, want databaseCondition
	}{
		{0, syncing, syncing},
		{1, good, good},
		{2, syncing, good},
		{1 + growPatience, syncing, syncing},
		{30 * time.Second, good, good},
		{31 * time.Second, databaseCondition{false, "syncing", "tcp:b"}, databaseCondition{false, "syncing", "tcp:b"}},
		{32 * time.Second, lost, lost},
		{33 * time.Second, syncing, syncing},
	} {
		conditions := map[string]databaseCondition{"sb": step.got}
		s.keep(conditions, start.Add(step.after))
		if conditions["sb"] != step.want {
			t.Errorf("step %d: %+v, want %+v", i, conditions["sb"], step.want)
		}
	}
}

// What is said of the node's rows is what Southbound has, and names what it does not have.
func TestConditionOfOwnRows(t *testing.T) {
	both := []string{"Chassis", "Chassis_Private"}
	for name, row := range map[string]struct {
		systemID string
		status   ovn.Status
		known    bool
		reason   string
		words    []string
	}{
		"before Southbound is read":  {"", ovn.Status{SystemID: "a1"}, false, reason.Published, nil},
		"published":                  {"", ovn.Status{SystemID: "a1", Published: true}, true, reason.Published, nil},
		"refused":                    {"", ovn.Status{SystemID: "a1", Publish: errors.New("RBAC")}, true, reason.Refused, []string{"RBAC"}},
		"one row is missing":         {"", ovn.Status{SystemID: "a1", Unregistered: both[1:]}, true, reason.NotRegistered, []string{`"a1" in Chassis_Private:`, "correct external_ids:system-id"}},
		"both, after a refusal":      {"", ovn.Status{SystemID: "a1", Unregistered: both, Publish: errors.New("RBAC")}, true, reason.NotRegistered, []string{`"a1" in Chassis and Chassis_Private:`, "chassis-del"}},
		"the configuration names it": {"x9", ovn.Status{SystemID: "x9", Unregistered: both}, true, reason.NotRegistered, []string{`"x9"`, "correct ovn.systemID"}},
	} {
		c := config.Default()
		c.OVN.SystemID = row.systemID
		got, known := ownRows(c, row.status)
		if known != row.known || got.reason != row.reason || got.ready != (row.reason == reason.Published) {
			t.Errorf("%s: %+v, known %v", name, got, known)
		}
		for _, word := range row.words {
			if !strings.Contains(got.detail, word) {
				t.Errorf("%s: %q does not say %q", name, got.detail, word)
			}
		}
	}
}

// A component that has reported nothing says what it waits for.
func TestRoleAwaits(t *testing.T) {
	for name, row := range map[string]struct {
		status ovn.Status
		want   string
	}{
		"nothing is read":   {ovn.Status{}, "vswitchd and sb"},
		"no system-id":      {ovn.Status{InSync: ovn.InSync{VSwitch: true}}, "external_ids:system-id in Open_vSwitch is empty"},
		"Southbound is not": {ovn.Status{SystemID: "a1", InSync: ovn.InSync{VSwitch: true}}, "vswitchd and sb"},
	} {
		if got := roleAwaits(row.status); !strings.Contains(got, row.want) {
			t.Errorf("%s: %q", name, got)
		}
	}
}
