package ovsdbtest

import (
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest/pki"
)

// PKI is a certificate authority of one test.
type PKI struct{ authority *pki.Authority }

// NewPKI makes an authority in the test's temporary directory.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	a, err := pki.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &PKI{authority: a}
}

// Files issues a certificate for the common name.
func (p *PKI) Files(t testing.TB, commonName string) pki.Files {
	t.Helper()
	files, err := p.authority.Issue(commonName)
	if err != nil {
		t.Fatal(err)
	}
	return files
}
