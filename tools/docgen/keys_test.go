package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var readers = []string{"../../controlplane/evpn", "../../controlplane/exposure", "../../controlplane/loadbalancer", "../../controlplane/metadata", "../../controlplane/ovn", "../../dataplane/ovs", "../../cmd/sluiced/..."}

// A key that the code reads in any of its ways, and the page does not explain, is
// an error that names it; so is one that is explained and not read.
func TestKeysOfThePageAreThoseOfTheCode(t *testing.T) {
	if err := keysPage(&bytes.Buffer{}, "sluiced", readers); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		`const keyNew = "a-new-key"`,
		`const optionNew = "a-new-key"`,
		`func f(p P) string { return p.ExternalIDs["a-new-key"] }`,
		`func f(p P) string { return p.Options["a-new-key"] }`,
		`func f(p P) string { return p.external()["a-new-key"] }`,
		`func f(p P) string { return p.External("a-new-key") }`,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "p.go"), []byte("package p\n"+code+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		err := keysPage(&bytes.Buffer{}, "sluiced", append([]string{dir}, readers...))
		if err == nil || !strings.Contains(err.Error(), "a-new-key is read") {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := keysPage(&bytes.Buffer{}, "sluiced", readers[1:]); err == nil || !strings.Contains(err.Error(), "neutron_bgpvpn:vni") {
		t.Errorf("without its reader: %v", err)
	}
}

// So it is with the keys of the controller.
func TestKeysOfTheController(t *testing.T) {
	dirs := []string{"../../controlplane/octavia", "../../controlplane/octavia/network", "../../controlplane/octavia/rowform"}
	if err := keysPage(&bytes.Buffer{}, "sluice-controller", dirs); err != nil {
		t.Fatal(err)
	}
	if err := keysPage(&bytes.Buffer{}, "sluice-controller", dirs[1:]); err == nil || !strings.Contains(err.Error(), "sluice:lb") {
		t.Errorf("without its reader: %v", err)
	}
}
