package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// Whose requests they are is what sluiced says, and of a port that has gone what the
// requests say themselves.
func TestRequestsOfAPort(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "d.sock")
	guests := func(a string) intent.PortAddressSet {
		return intent.NewPortAddressSet(intent.PortAddress{Addr: netip.MustParseAddr(a)})
	}
	s := admin.NewServer(nodeapi.Program, socket, slog.New(slog.DiscardHandler))
	admin.Handle(s, nodeapi.GetMetadata, func(context.Context, admin.Nothing) (status.Metadata, error) {
		return status.Metadata{Used: true, Ports: []status.MetadataPort{
			{Port: "p-red", Instance: "red", Served: status.FromTap, Device: "tapred", Addresses: guests("10.0.0.5")},
			{Port: "p-red2", Instance: "red", Served: status.FromTap, Device: "tapred2", Addresses: guests("10.0.0.6")},
			{Port: "p-blue", Instance: "blue", Served: status.FromNamespace, Addresses: guests("10.0.0.6")},
			{Port: "p-new", Instance: "new", Addresses: guests("10.0.0.9")},
		}}, nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	d := newDaemon(&options{socket: socket})
	defer d.client.Close()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := admin.Call(t.Context(), d.client, nodeapi.GetMetadata, admin.Nothing{}); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	of := func(port, instance, address string) status.MetadataRequest {
		return status.MetadataRequest{Port: port, Instance: instance, Address: netip.MustParseAddr(address)}
	}
	all := []status.MetadataRequest{of("p-red", "red", "10.0.0.5"), of("p-red2", "red", "10.0.0.6"), of("p-blue", "blue", "10.0.0.6"), of("p-gone", "gone", "10.0.0.5")}
	for name, want := range map[string]string{
		"p-red": "p-red", "red": "p-red p-red2", "tapred2": "p-red2", "10.0.0.5": "p-red", "p-gone": "p-gone", "gone": "p-gone", "10.0.0.9": "",
		"10.0.0.6": "several VMs here have 10.0.0.6", "p-none": "no VM of this node has the port, instance, tap or address p-none",
	} {
		shown, err := requestsOf(t.Context(), io.Discard, d, all, name)
		var ports []string
		for _, r := range shown {
			ports = append(ports, r.Port)
		}
		got := strings.Join(ports, " ")
		if err != nil && strings.HasPrefix(err.Error(), want) && want != "" {
			continue
		}
		if err != nil || got != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	away := newDaemon(&options{socket: socket + ".none"})
	defer away.client.Close()
	var notes bytes.Buffer
	if shown, err := requestsOf(t.Context(), &notes, away, all, "gone"); err != nil || len(shown) != 1 || !strings.Contains(notes.String(), "cannot be listed") {
		t.Errorf("without sluiced: %v %v %s", shown, err, &notes)
	}
}

// The commands that ask the metadata proxy, against one that answers, and without one.
func TestMetadataCommands(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "m.sock")
	proxy := status.MetadataProxy{Backend: "nova", Ready: true, Ports: 2, Conditions: []status.Condition{{Name: "listeners", Ready: true, Reason: "listening"}},
		Listeners: []status.MetadataListener{{Namespace: "/run/netns/sluice-metadata", Address: "169.254.169.254:80", Serving: true}},
		Outcomes:  []status.MetadataOutcome{{Outcome: "answered", Requests: 3, Description: "all is well"}, {Outcome: "slow", Description: "not shown"}}}
	requests := []status.MetadataRequest{
		{Time: time.Now(), Port: "p-red", Instance: "inst-red", Network: "net-red", Address: netip.MustParseAddr("10.0.0.5"), Method: "GET", Path: "/openstack", Status: 200, Outcome: "answered", Took: 1500 * time.Microsecond},
		{Time: time.Now(), Port: "p-blue", Instance: "inst-blue", Method: "GET", Path: "/a", Status: 404, Outcome: "answered"},
		{Time: time.Now(), Outcome: "too-many-connections"},
	}
	s := admin.NewServer(nodeapi.Program, socket, slog.New(slog.DiscardHandler))
	admin.Handle(s, nodeapi.GetMetadataProxy, func(context.Context, admin.Nothing) (status.MetadataProxy, error) { return proxy, nil })
	admin.Handle(s, nodeapi.ListMetadataRequests, func(context.Context, admin.Nothing) ([]status.MetadataRequest, error) { return requests, nil })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	command := func(args ...string) (string, error) {
		root := newRoot()
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(append([]string{"metadata", "--metadata-socket", socket}, args...))
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if _, err := command("proxy"); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ args, has, hasNot string }{
		{"requests", "inst-red", "x-token"},
		{"requests", "1.5ms", ""},
		{"requests --port p-red", "inst-red", "inst-blue"},
		{"requests --port inst-blue", "inst-blue", "inst-red"},
		{"requests --failed", "too-many-connections", "inst-red"},
		{"requests --port p-none", "no requests", "inst"},
		{"requests -o json", `"instance": "inst-red"`, ""},
		{"requests -o yaml", "instance: inst-red", ""},
		{"requests --port p-none -o json", "[]", ""},
		{"proxy", "/run/netns/sluice-metadata", "not shown"},
		{"proxy -o json", `"backend": "nova"`, ""},
	} {
		out, err := command(strings.Fields(tc.args)...)
		if err != nil || !strings.Contains(out, tc.has) || tc.hasNot != "" && strings.Contains(out, tc.hasNot) {
			t.Errorf("%s: %v\n%s", tc.args, err, out)
		}
	}
	proxy.Ready = false
	if got := run(t.Context(), []string{"metadata", "proxy", "--metadata-socket", socket}); got != exitAnswerNo {
		t.Errorf("not ready: exit code %d", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, args := range []string{"proxy", "requests"} {
		if got := run(t.Context(), []string{"metadata", args, "--metadata-socket", socket}); got != exitOffline {
			t.Errorf("%s without a proxy: exit code %d", args, got)
		}
		if _, err := command(args); err == nil || err.Error() != "sluiced metadata does not answer on "+socket {
			t.Errorf("%s without a proxy: %v", args, err)
		}
	}
	if got := run(t.Context(), []string{"metadata", "nonsense"}); got != exitUsage {
		t.Errorf("nonsense: exit code %d", got)
	}
}
