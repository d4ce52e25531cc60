package nova_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/test/nova"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cret"

var config = nova.Config{Secret: secret, Instances: []nova.Instance{
	{ID: "inst-red1", Project: "red", Name: "red1", UserData: bytes.Repeat([]byte("\x00\xffuser"), 10923)},
	{ID: "inst-blue1", Project: "blue", Name: "blue1", VendorData: json.RawMessage(`{"a":1}`)},
}}

// ask makes a request with headers as lines.
func ask(t *testing.T, n *nova.Nova, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(method, "http://nova"+path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	w := httptest.NewRecorder()
	n.ServeHTTP(w, r)
	return w
}

func signed(id, project string) []string {
	return []string{"X-Instance-ID: " + id, "X-Tenant-ID: " + project, "X-Instance-ID-Signature: " + nova.Sign(secret, id)}
}

// Rows of nova/api/metadata/handler.py and base.py.
func TestAnswers(t *testing.T) {
	red, blue := signed("inst-red1", "red"), signed("inst-blue1", "blue")
	for _, c := range []struct {
		name, path string
		headers    []string
		status     int
		body       string // a part of it
	}{
		{"the versions of EC2 are for anybody", "/", nil, 200, "2009-04-04\nlatest"},
		{"no instance", "/openstack", red[1:], 400, "X-Instance-Id header is missing"},
		{"no signature", "/openstack", red[:2], 400, "X-Instance-Id-Signature header is missing"},
		{"no project", "/openstack", []string{red[0], red[2]}, 400, "X-Tenant-Id header is missing"},
		{"another secret", "/openstack", []string{red[0], red[1], "X-Instance-ID-Signature: " + nova.Sign("x", "inst-red1")}, 403, "Invalid"},
		{"another one's signature", "/openstack", []string{red[0], red[1], blue[2]}, 403, "Invalid"},
		{"two instances", "/openstack", append([]string{blue[0]}, red...), 403, "Invalid"},
		{"another project", "/openstack", []string{red[0], blue[1], red[2]}, 404, ""},
		{"two projects", "/openstack", append([]string{blue[1]}, red...), 404, ""},
		{"an instance that is not", "/openstack", signed("inst-x", "red"), 404, ""},
		{"versions", "/openstack", red, 200, "2018-08-27\n"},
		{"documents", "/openstack/2018-08-27", red, 200, "meta_data.json\nuser_data\npassword\nvendor_data.json\nnetwork_data.json\nvendor_data2.json"},
		{"documents of an early version", "/openstack/2012-08-10/", red, 200, "meta_data.json\nuser_data"},
		{"no such version", "/openstack/2018-08-28", red, 404, ""},
		{"no such document", "/openstack/latest/x", red, 404, ""},
		{"the instance", "/openstack/latest/meta_data.json", red, 200, `"uuid":"inst-red1"`},
		{"the other", "/openstack/latest//meta_data.json", blue, 200, `"uuid":"inst-blue1"`},
		{"user data", "/openstack/latest/user_data", red, 200, string(config.Instances[0].UserData)},
		{"no user data", "/openstack/latest/user_data", blue, 404, ""},
		{"vendor data", "/openstack/latest/vendor_data.json", blue, 200, `{"a":1}`},
		{"more of it", "/openstack/latest/vendor_data2.json", blue, 200, `{}`},
		{"the network", "/openstack/latest/network_data.json", red, 200, `"ipv4_dhcp"`},
		{"EC2's documents", "/latest", red, 200, "meta-data/\nuser-data"},
		{"EC2's items", "/2009-04-04/meta-data/", red, 200, "instance-id"},
		{"by the long way", "/ec2/2009-04-04/meta-data/instance-id", red, 200, "inst-red1"},
		{"EC2's instance", "/latest/meta-data/instance-id", blue, 200, "inst-blue1"},
		{"EC2's user data", "/latest/user-data", red, 200, string(config.Instances[0].UserData)},
		{"EC2's user data that is not", "/latest/user-data", blue, 404, ""},
		{"a token of EC2's second version", "/latest/api/token", red, 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := ask(t, nova.New(config), http.MethodGet, c.path, "", c.headers...)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
				t.Errorf("%d %.200s; want %d with %.200q", w.Code, w.Body, c.status, c.body)
			}
		})
	}
}

// A password is written once, and is one instance's.
func TestPassword(t *testing.T) {
	n := nova.New(config)
	const path = "/openstack/latest/password"
	for _, c := range []struct {
		method, body string
		headers      []string
		status       int
		want         string
	}{
		{http.MethodGet, "", signed("inst-red1", "red"), 200, ""},
		{http.MethodPost, strings.Repeat("x", 1021), signed("inst-red1", "red"), 400, "too large"},
		{http.MethodPost, "abc", signed("inst-red1", "red"), 200, ""},
		{http.MethodPost, "def", signed("inst-red1", "red"), 409, ""},
		{http.MethodGet, "", signed("inst-red1", "red"), 200, "abc"},
		{http.MethodGet, "", signed("inst-blue1", "blue"), 200, ""},
	} {
		if w := ask(t, n, c.method, path, c.body, c.headers...); w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %.10q: %d %s", c.method, c.body, w.Code, w.Body)
		}
	}
	if got := n.Requests(); len(got) != 6 || got[2].Status != 200 || string(got[2].Body) != "abc" || len(n.Requests()) != 0 {
		t.Errorf("%d requests are remembered", len(got))
	}
}

func TestFaults(t *testing.T) {
	n := nova.New(config)
	headers := signed("inst-red1", "red")
	n.SetFault(nova.Fault{Status: 503})
	if w := ask(t, n, http.MethodGet, "/openstack", "", headers...); w.Code != 503 {
		t.Errorf("%d", w.Code)
	}
	n.SetFault(nova.Fault{Silent: true})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	if w.Body.Len() != 0 {
		t.Errorf("it said %s", w.Body)
	}
	n.SetFault(nova.Fault{})
	n.Drop("inst-red1")
	if w := ask(t, n, http.MethodGet, "/openstack", "", headers...); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
}

// It serves what a file says until its context ends.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nova.json")
	b, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- nova.Run(ctx, file, address) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/latest/meta-data/instance-id", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range signed("inst-blue1", "blue") {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	var resp *http.Response
	for range 100 {
		if resp, err = client.Do(r); err == nil {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || string(body) != "inst-blue1" {
		t.Errorf("%s, %v", body, err)
	}
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
