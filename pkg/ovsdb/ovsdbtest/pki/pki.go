package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// Authority signs certificates and writes them into its directory.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Files are PEM files of one party.
type Files struct {
	Cert, Key, CA string
}

const lifetime = 365 * 24 * time.Hour

// New makes an authority in an existing directory: ca.pem and ca-key.pem.
func New(dir string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "test authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(lifetime),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	a := &Authority{dir: dir, key: key}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	if a.cert, err = x509.ParseCertificate(raw); err != nil {
		return nil, fmt.Errorf("authority: %w", err)
	}
	if err := a.writeKey("ca-key.pem", key); err != nil {
		return nil, err
	}
	return a, a.write("ca.pem", "CERTIFICATE", raw)
}

// Open finds an authority that New has made.
func Open(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	cert, err := read(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return nil, err
	}
	if a.cert, err = x509.ParseCertificate(cert); err != nil {
		return nil, fmt.Errorf("authority in %s: %w", dir, err)
	}
	key, err := read(filepath.Join(dir, "ca-key.pem"))
	if err != nil {
		return nil, err
	}
	if a.key, err = x509.ParseECPrivateKey(key); err != nil {
		return nil, fmt.Errorf("authority in %s: %w", dir, err)
	}
	return a, nil
}

// FilesIn names the files of a common name at the authority in dir, whether they
// are there or not.
func FilesIn(dir, commonName string) Files {
	return Files{
		Cert: filepath.Join(dir, commonName+"-cert.pem"),
		Key:  filepath.Join(dir, commonName+"-key.pem"),
		CA:   filepath.Join(dir, "ca.pem"),
	}
}

// Issue writes a certificate for the common name, which is what OVN's RBAC takes
// as the chassis name.
func (a *Authority) Issue(commonName string) (Files, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Files{}, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return Files{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Files{}, fmt.Errorf("certificate for %s: %w", commonName, err)
	}
	if err := a.writeKey(commonName+"-key.pem", key); err != nil {
		return Files{}, err
	}
	return FilesIn(a.dir, commonName), a.write(commonName+"-cert.pem", "CERTIFICATE", raw)
}

func (a *Authority) writeKey(name string, key *ecdsa.PrivateKey) error {
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return a.write(name, "EC PRIVATE KEY", raw)
}

func (a *Authority) write(name, kind string, raw []byte) error {
	return os.WriteFile(filepath.Join(a.dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600)
}

func read(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s: no PEM block", file)
	}
	return block.Bytes, nil
}
