package serve

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"github.com/ovn-sluice/sluice/pkg/metrics"
	"github.com/ovn-sluice/sluice/pkg/status"
)

type fixture struct {
	status *status.Registry
	stuck  error
	addr   string
}

func withHealth(t *testing.T, c Config, pprof bool, address string) *fixture {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	f := &fixture{status: status.NewRegistry(log)}
	s := New(c, log)
	s.MountHealth(Health{Status: f.status, Metrics: metrics.NewRegistry("v1", func(string, error) {}).Gatherer(), PProf: pprof,
		Alive: func(context.Context) error { return f.stuck }})
	f.addr, _ = run(t, s, address)
	return f
}

func get(t *testing.T, client *http.Client, url, user, password string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if user != "" {
		r.SetBasicAuth(user, password)
	}
	r.Close = true
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestHealthAndMetrics(t *testing.T) {
	for family, address := range families {
		t.Run(family, func(t *testing.T) {
			f := withHealth(t, Config{}, false, address)
			f.status.Require("sb")
			url := "http://" + f.addr
			if code, body := get(t, http.DefaultClient, url+"/readyz", "", ""); code != 503 || !strings.Contains(body, "sb: starting") {
				t.Errorf("readyz: %d %s", code, body)
			}
			f.status.SetCondition("sb", true, "in-sync", "")
			if code, _ := get(t, http.DefaultClient, url+"/readyz", "", ""); code != 200 {
				t.Errorf("readyz: %d", code)
			}
			if code, _ := get(t, http.DefaultClient, url+"/livez", "", ""); code != 200 {
				t.Errorf("livez: %d", code)
			}
			f.stuck = errors.New("the reconciler has not moved for 60s")
			if code, body := get(t, http.DefaultClient, url+"/livez", "", ""); code != 503 || !strings.Contains(body, "reconciler") {
				t.Errorf("livez: %d %s", code, body)
			}
			if code, body := get(t, http.DefaultClient, url+"/metrics", "", ""); code != 200 || !strings.Contains(body, `sluice_build_info{`) {
				t.Errorf("metrics: %d %s", code, body)
			}
			if code, _ := get(t, http.DefaultClient, url+"/debug/pprof/", "", ""); code != 404 {
				t.Errorf("pprof without the flag: %d", code)
			}
		})
	}
}

func TestPProf(t *testing.T) {
	f := withHealth(t, Config{}, true, "127.0.0.1:0")
	if code, _ := get(t, http.DefaultClient, "http://"+f.addr+"/debug/pprof/", "", ""); code != 200 {
		t.Errorf("pprof: %d", code)
	}
}

func TestTLSAndBasicAuth(t *testing.T) {
	dir := t.TempDir()
	pool := writeCertificate(t, dir)
	hash, err := bcrypt.GenerateFromPassword([]byte("hush"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "web.yaml")
	text := "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\nbasic_auth_users: {prom: " + string(hash) + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f := withHealth(t, Config{WebConfig: file}, false, "127.0.0.1:0")
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if code, _ := get(t, client, "https://"+f.addr+"/metrics", "", ""); code != 401 {
		t.Errorf("without a password: %d", code)
	}
	if code, _ := get(t, client, "https://"+f.addr+"/metrics", "prom", "hush"); code != 200 {
		t.Errorf("with the password: %d", code)
	}
}

func writeCertificate(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, b := range map[string][]byte{"cert.pem": cert, "key.pem": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	return pool
}
