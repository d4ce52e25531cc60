package neutron

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// answerer is a Neutron that gives one answer, and keeps what it was asked.
type answerer struct {
	status        int
	body          string
	method, path  string
	token, accept string
	sent          map[string]any
}

func (a *answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.method, a.path, a.token, a.accept, a.sent = r.Method, r.URL.String(), r.Header.Get("X-Auth-Token"), r.Header.Get("Accept"), nil
	if raw, err := io.ReadAll(r.Body); err != nil || len(raw) > 0 && json.Unmarshal(raw, &a.sent) != nil {
		w.WriteHeader(http.StatusTeapot)
		return
	}
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}

func newClient(t *testing.T, h http.Handler, tokenFile string) *Client {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	c, err := NewClient(ClientConfig{URL: server.URL + "/", TokenFile: tokenFile})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestCreateVIPPort(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := &answerer{status: 201, body: `{"port": {"id": "p1", "fixed_ips": [{"subnet_id": "s2", "ip_address": "fd00::5"}, {"subnet_id": "s1", "ip_address": "10.0.0.5"}]}}`}
	c := newClient(t, a, token)
	p := VIPPort{Name: "ovn-lb-vip-lb", Balancer: "lb", Project: "alpha", Network: "n1", Subnet: "s1"}
	made, err := c.CreateVIPPort(t.Context(), p)
	if want := (MadePort{"p1", netip.MustParseAddr("10.0.0.5")}); err != nil || made != want {
		t.Errorf("made %v %v", made, err)
	}
	want := map[string]any{"port": map[string]any{
		"name": "ovn-lb-vip-lb", "network_id": "n1", "project_id": "alpha", "admin_state_up": true, "device_id": "lb-lb", "device_owner": "ovn-lb:vip",
		"description": "VIP of a load balancer of sluice-controller", "fixed_ips": []any{map[string]any{"subnet_id": "s1"}},
	}}
	if !reflect.DeepEqual(a.sent, want) || a.method != "POST" || a.path != "/v2.0/ports" || a.token != "one" || a.accept != "application/json" {
		t.Errorf("asked %s %s %v, token %q", a.method, a.path, a.sent, a.token)
	}
	// The token of the file as it is at each call, and an address that is asked for.
	if err := os.WriteFile(token, []byte("two"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Address = netip.MustParseAddr("10.0.0.9")
	if _, err := c.CreateVIPPort(t.Context(), p); err != nil || a.token != "two" {
		t.Errorf("token %q, %v", a.token, err)
	}
	if fixed := a.sent["port"].(map[string]any)["fixed_ips"].([]any)[0].(map[string]any); fixed["ip_address"] != "10.0.0.9" {
		t.Errorf("asked for %v", fixed)
	}
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	a.method = ""
	if _, err := c.CreateVIPPort(t.Context(), p); err == nil || a.method != "" {
		t.Errorf("without its token: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for body, want := range map[string]Refusal{
		`{"NeutronError": {"type": "IpAddressAlreadyAllocated", "message": "IP address 10.0.0.5 already allocated in subnet s1", "detail": ""}}`: {
			409, "IpAddressAlreadyAllocated", "IP address 10.0.0.5 already allocated in subnet s1",
		},
		`<html>`: {409, "", ""}, ``: {409, "", ""}, `{}`: {409, "", ""},
	} {
		c := newClient(t, &answerer{status: 409, body: body}, "")
		_, err := c.CreateVIPPort(t.Context(), VIPPort{})
		if r, is := errors.AsType[*Refusal](err); !is || *r != want {
			t.Errorf("%s: %v", body, err)
		}
	}
	// A malformed answer does not say whether a port was made.
	for _, body := range []string{`{"port": {"id": "p1", "fixed_ips": []}}`, `{"port": {"fixed_ips": [{"ip_address": "10.0.0.5"}]}}`, "", "[]"} {
		_, err := newClient(t, &answerer{status: 201, body: body}, "").CreateVIPPort(t.Context(), VIPPort{})
		if _, is := errors.AsType[*Refusal](err); err == nil || is {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestDeletePort(t *testing.T) {
	for status, ok := range map[int]bool{204: true, 404: true, 409: false, 500: false} {
		a := &answerer{status: status}
		err := newClient(t, a, "").DeletePort(t.Context(), "a/b")
		if (err == nil) != ok || a.method != "DELETE" || a.path != "/v2.0/ports/a%2Fb" || a.token != "" {
			t.Errorf("%d: %v, asked %s %s", status, err, a.method, a.path)
		}
	}
}

// A list of several pages, by a Neutron that does not filter.
func TestVIPPorts(t *testing.T) {
	const own = `"device_owner": "ovn-lb:vip", "description": "VIP of a load balancer of sluice-controller"`
	pages := map[string]string{
		"":   `{"ports": [{"id": "p1", ` + own + `}, {"id": "p2", "device_owner": "ovn-lb:vip", "description": ""}], "ports_links": [{"rel": "next", "href": "http://other.example/"}]}`,
		"p2": `{"ports": [{"id": "p3", "device_owner": "compute:nova", "description": "VIP of a load balancer of sluice-controller"}, {"id": "p4", ` + own + `}], "ports_links": [{"rel": "previous"}]}`,
	}
	c := newClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("device_owner") != "ovn-lb:vip" || !strings.HasPrefix(q.Get("description"), "VIP of") {
			t.Errorf("asked for %v", q)
		}
		_, _ = io.WriteString(w, pages[r.URL.Query().Get("marker")])
	}), "")
	if ids, err := c.VIPPorts(t.Context()); err != nil || !slices.Equal(ids, []string{"p1", "p4"}) {
		t.Errorf("ports %q %v", ids, err)
	}
	endless := newClient(t, &answerer{status: 200, body: pages[""]}, "")
	if ids, err := endless.VIPPorts(t.Context()); err == nil {
		t.Errorf("ports without an end: %q", ids)
	}
}

// A token goes to no other address than the one that is configured.
func TestRedirect(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	c := newClient(t, http.RedirectHandler(other.URL, http.StatusTemporaryRedirect), "")
	_, err := c.VIPPorts(t.Context())
	if r, is := errors.AsType[*Refusal](err); !is || r.Status != http.StatusTemporaryRedirect || asked {
		t.Errorf("redirected: %v", err)
	}
}

func TestCA(t *testing.T) {
	server := httptest.NewTLSServer(&answerer{status: 204})
	defer server.Close()
	if _, err := NewClient(ClientConfig{URL: server.URL, CA: "/nosuch"}); err == nil {
		t.Error("a CA that is not there is taken")
	}
	c, err := NewClient(ClientConfig{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.DeletePort(t.Context(), "p"); err == nil {
		t.Error("an unknown certificate is trusted")
	}
}
