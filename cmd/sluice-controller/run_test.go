package main

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/cmd/sluice-controller/config"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The program as clients meet it: discovery at each address, tokens, health, metrics, and an end
// in which nothing hangs.
func TestRun(t *testing.T) {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Northbound})
	south := ovsdbtest.Start(t, ovsdbtest.Options{Schema: schema.Southbound})
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(tokens, []byte("tokens: [{token: secret, project: alpha, roles: [member]}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := config.Default()
	c.OVN.NB, c.OVN.SB, c.HTTP.Listen, c.Auth.Mode, c.Auth.Tokens = server.Endpoint(), south.Endpoint(), ovsdbtest.FreeAddress(t, "::1"), config.ModeTokens, tokens
	c.Neutron.URL = "http://127.0.0.1:9" // nobody needs a port of it here
	ctx, cancel := context.WithCancel(context.Background())
	log := new(strings.Builder)
	done := make(chan error)
	go func() { done <- run(ctx, c, slog.New(slog.NewTextHandler(log, nil))) }()
	base := "http://" + c.HTTP.Listen
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: ovsdbtest.Timeout}
	get := func(path, token string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Auth-Token", token)
		answer, err := client.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		if answer.StatusCode != 0 && strings.Contains(path, "lbaas") && answer.Header.Get("X-Openstack-Request-Id") == "" {
			t.Errorf("%s has no request ID", path)
		}
		return answer.StatusCode, string(body)
	}
	deadline := time.Now().Add(ovsdbtest.Timeout)
	for code := 0; code != 200; code, _ = get("/readyz", "") {
		if time.Now().After(deadline) {
			t.Fatal("it is not ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, root := range []string{"", "/load-balancer", "/network"} {
		for _, path := range []string{"/", "/v2", "/v2/", "/v2.0", "/v2.0/"} {
			code, body := get(root+path, "")
			var out struct {
				Versions []struct {
					Status string
					Links  []struct{ Href string }
				}
			}
			if err := json.Unmarshal([]byte(body), &out); code != 200 || err != nil {
				t.Errorf("%s%s: %d %q", root, path, code, body)
				continue
			}
			if last := out.Versions[len(out.Versions)-1]; last.Status != "CURRENT" || !strings.HasPrefix(last.Links[0].Href, base+root+"/v2") {
				t.Errorf("%s%s: %+v", root, path, last)
			}
		}
	}
	for path, want := range map[string]int{
		"/v2.0/lbaas/loadbalancers": 200, "/v2/lbaas/loadbalancers": 200, "/load-balancer/v2.0/lbaas/loadbalancers": 200,
		"/v2.0/networks": 200, "/network/v2.0/subnets": 200, "/v2/ports": 200, "/nosuch": 404, "/v2.0/lbaas/nosuch": 404,
	} {
		if code, body := get(path, "secret"); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
		if code, body := get(path, "other"); code != 401 {
			t.Errorf("%s with another token: %d %s", path, code, body)
		}
	}
	if _, body := get("/metrics", ""); !strings.Contains(body, `sluice_controller_requests_total{code="401",method="GET"} 8`) || !strings.Contains(body, `sluice_component_ready{component="nb"} 1`) {
		t.Errorf("metrics: %s", body)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("it ended with %v", err)
	}
	if strings.Contains(log.String(), "secret") {
		t.Error("the log has a token")
	}
	if !strings.Contains(log.String(), "path=/v2.0/networks") {
		t.Errorf("the log has no requests: %s", log)
	}
}

func TestConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	for text, want := range map[string]string{
		"":                          "",
		"http: {listen: '[::1]:1'}": "",
		"http: {listen: ':1'}":      "auth.mode",
		"http: {listen: '0.0.0.0:1'}\nauth: {anywhere: true}": "",
		"auth: {mode: tokens}":                                "auth.tokens",
		"auth: {mode: keystone}":                              "auth.mode",
		"http: {certificate: /a}":                             "http.certificate",
		"ovn: {nb: ''}":                                       "ovn.nb",
		"http: {timeout: 1ms}":                                "http.timeout",
		"nosuch: 1":                                           "nosuch",
		"neutron: {url: 'http://127.0.0.1:9696/', tokenFile: /a}":                   "",
		"neutron: {url: 'https://neutron.example:9696', tokenFile: /a, caCert: /b}": "",
		"neutron: {url: 'http://neutron.example:9696', tokenFile: /a}":              "neutron.url",
		"neutron: {url: 'http://neutron.example:9696', caCert: /a}":                 "neutron.caCert",
		"neutron: {url: 'https://neutron.example:9696/v2.0/'}":                      "neutron.url",
		"neutron: {url: 'neutron.example:9696'}":                                    "neutron.url",
		"neutron: {url: 'https://a:b@neutron.example:9696'}":                        "neutron.url",
		"neutron: {tokenFile: /a}":                                                  "neutron.url",
		"neutron: {url: 'https://neutron.example:9696', tokenFile: a}":              "neutron.tokenFile",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := config.Load(path)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// --check refuses what a start would refuse, by the names of the settings.
func TestVerify(t *testing.T) {
	for want, text := range map[string]string{
		"":               "",
		"ovn.nb":         "ovn: {nb: bogus}",
		"missing port":   "ovn: {nb: 'tcp:192.0.2.1'}",
		"/nonexistent/c": "ovn: {nb: 'ssl:192.0.2.1:6641', tls: {certificate: /nonexistent/c, privateKey: /nonexistent/k, caCert: /nonexistent/a}}",
		"tokens":         "auth: {mode: tokens, tokens: /nonexistent/t}",
		"clientCA":       "http: {clientCA: /nonexistent/ca}",
		"/nonexistent/s": "http: {certificate: /nonexistent/s, privateKey: /nonexistent/p}",
		"ovn.sb":         "ovn: {sb: bogus}",
	} {
		file := filepath.Join(t.TempDir(), "controller.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		root := newRoot()
		root.SetOut(io.Discard)
		root.SetArgs([]string{"--check", file})
		if err := root.ExecuteContext(t.Context()); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
