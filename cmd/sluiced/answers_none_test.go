package main

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// answers is a daemon without a node that answers on a socket.
func answers(t *testing.T, latest nodeFacts) *admin.Client {
	t.Helper()
	d := followingDaemon(t, func(c *config.Config) {
		c.Admin.Socket, c.BGP.ASN = filepath.Join(t.TempDir(), "s"), 64512
	})
	d.latest = latest
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.runAdmin(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	client := admin.NewClient(nodeapi.Program, d.cfg.Admin.Socket)
	eventually(t, "an answer", func() error {
		_, err := admin.Call(ctx, client, nodeapi.GetStatus, admin.Nothing{})
		return err
	})
	return client
}

// Lists of a node without a role are empty, and not null.
func TestListsWithoutARole(t *testing.T) {
	client := answers(t, nodeFacts{reason: "no gateway port is bound here"})
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
	for _, latest := range []nodeFacts{{}, {gateway: true, reason: "port lrp-red"}} {
		_, err := admin.Call(t.Context(), answers(t, latest), nodeapi.ListVRFs, admin.Nothing{})
		if !errors.Is(err, admin.ErrUnavailable) || !strings.Contains(err.Error(), "goes on forwarding") {
			t.Errorf("%+v: %v", latest, err)
		}
	}
}
