package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// answers is a daemon without a node that answers on a socket.
func answers(t *testing.T, roles config.Role, events ...ovn.Event) *admin.Client {
	t.Helper()
	cfg, dir := config.Default(), t.TempDir()
	cfg.StateDir, cfg.OVN.VSwitch, cfg.Dataplane.BPFFS = dir, "unix:"+filepath.Join(dir, "db.sock"), filepath.Join(dir, "bpffs")
	cfg.Admin.Socket, cfg.BGP.ASN, cfg.OVN.SystemID, cfg.Roles = filepath.Join(dir, "s"), 64512, "a1", roles
	d, err := newDaemon(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		d.Steps.Take(e)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.runAdmin(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := admin.NewClient(nodeapi.Program, cfg.Admin.Socket)
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err = admin.Call(ctx, client, nodeapi.GetStatus, admin.Nothing{}); err == nil {
			return client
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// read is an event with all databases in sync, and nothing in them.
var read = ovn.Event{Rows: ovn.NewRows(), Dirty: ovn.Dirty{All: true}, InSync: ovn.InSync{SB: true, VSwitch: true, NB: true}}

// Lists of a node without a role are empty, and not null.
func TestListsWithoutARole(t *testing.T) {
	client := answers(t, config.RoleNone, read)
	for path, want := range map[string]string{
		"/v1/vrfs": `[]`, "/v1/routes": `[]`, "/v1/bgp/routes": `[]`, "/v1/bgp": `{"asn":64512,"neighbors":[]}`,
		"/v1/underlay": `{"install":false,"inSync":false,"announcements":[],"routes":[]}`,
		"/v1/drops":    `{"counts":[]}`, "/v1/diff": `{"changes":[]}`,
	} {
		got, err := admin.Call(t.Context(), client, admin.NewEndpoint[admin.Nothing, json.RawMessage](path), admin.Nothing{})
		if err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%s: %s, %v, want %s", path, got, err, want)
		}
	}
	if _, err := admin.Call(t.Context(), client, nodeapi.GetVRF, nodeapi.VRFSelector{VNI: 1001}); !errors.Is(err, admin.ErrNotFound) {
		t.Errorf("a VRF: %v", err)
	}
}

// What is not known is not said to be nothing.
func TestListsBeforeTheNode(t *testing.T) {
	for what, events := range map[string][]ovn.Event{"before OVN is read": nil, "while the gateway starts": {read}} {
		_, err := admin.Call(t.Context(), answers(t, config.RoleGateway, events...), nodeapi.ListVRFs, admin.Nothing{})
		if !errors.Is(err, admin.ErrUnavailable) || !strings.Contains(err.Error(), "keep forwarding") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A node that forwards nothing is an answer to "explain", not an error.
func TestExplainWithoutANode(t *testing.T) {
	e, err := admin.Call(t.Context(), answers(t, config.RoleNone, read), nodeapi.Explain, status.Query{VRF: 1001})
	if err != nil {
		t.Fatal(err)
	}
	if last := e.Steps[len(e.Steps)-1]; e.Works || !strings.Contains(last.Detail, "roles: none") {
		t.Errorf("explanation %+v", e)
	}
}
