package ovsdbtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// PKI is a certificate authority of one test.
type PKI struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Files are PEM files of one party.
type Files struct {
	Cert, Key, CA string
}

// NewPKI makes an authority in the test's temporary directory.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	p := &PKI{dir: t.TempDir(), key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &p.key.PublicKey, p.key)
	if err != nil {
		t.Fatalf("authority: %v", err)
	}
	if p.cert, err = x509.ParseCertificate(raw); err != nil {
		t.Fatalf("authority: %v", err)
	}
	p.write(t, "ca.pem", "CERTIFICATE", raw)
	return p
}

// Files issues a certificate for the common name, which is what OVN's RBAC takes
// as the chassis name.
func (p *PKI) Files(t testing.TB, commonName string) Files {
	t.Helper()
	key := newKey(t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatalf("serial number: %v", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, p.cert, &key.PublicKey, p.key)
	if err != nil {
		t.Fatalf("certificate: %v", err)
	}
	rawKey, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	return Files{
		Cert: p.write(t, commonName+"-cert.pem", "CERTIFICATE", raw),
		Key:  p.write(t, commonName+"-key.pem", "EC PRIVATE KEY", rawKey),
		CA:   filepath.Join(p.dir, "ca.pem"),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatalf("key: %v", err)
	}
	return key
}

func (p *PKI) write(t testing.TB, name, kind string, raw []byte) string {
	t.Helper()
	file := filepath.Join(p.dir, name)
	block := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatalf("write %s: %v", name, err)
	}
	return file
}
