package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongWordsAreUsage(t *testing.T) {
	for _, args := range [][]string{{"--nonsense"}, {"word"}, {"--dry-run", "-o", "xml"}} {
		root := newRoot(nil)
		root.SetArgs(args)
		if err := root.ExecuteContext(t.Context()); !errors.As(err, new(*usageError)) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// What is in effect is printed, and a file that is named and not there is an error.
func TestCheckLooksAtFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sluiced.yaml")
	text := "bgp: {asn: 64512, neighbors: [{address: 192.0.2.1, passwordFile: " + dir + "/secret}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	check := func() (string, error) {
		var out bytes.Buffer
		root := newRoot(nil)
		root.SetArgs([]string{"--check", file})
		root.SetOut(&out)
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	if out, err := check(); err == nil || !strings.Contains(err.Error(), "192.0.2.1") || !strings.Contains(out, "64512") {
		t.Errorf("%s, error %v", out, err)
	}
	if err := os.WriteFile(dir+"/secret", []byte("hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := check(); err != nil {
		t.Error(err)
	}
}

// So is one that is there and of no use: a proxy that starts itself anew would not start.
func TestCheckLooksIntoFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, empty, file := write("secret", "s\n"), write("empty", "\n"), filepath.Join(dir, "sluiced.yaml")
	for text, want := range map[string]string{
		"backend: nova, nova: {hosts: [a], secretFile: " + secret + "}":                                                                        "",
		"backend: nova, nova: {hosts: [a], secretFile: " + empty + "}":                                                                         "is empty",
		"backend: nova, enabled: false, nova: {hosts: [a], secretFile: " + empty + "}":                                                         "",
		"backend: nova, nova: {hosts: [a], protocol: https, secretFile: " + secret + ", caCert: " + empty + "}":                                "no certificate in",
		"backend: nova, nova: {hosts: [a], protocol: https, secretFile: " + secret + ", clientCert: " + empty + ", clientKey: " + secret + "}": "nova_client_cert",
		"backend: files, files: " + dir:    "",
		"backend: files, files: " + secret: "not a directory",
	} {
		write("sluiced.yaml", "roles: none\nmetadata: {"+text+"}\n")
		root := newRoot(nil)
		root.SetArgs([]string{"--check", file})
		root.SetOut(io.Discard)
		err := root.ExecuteContext(t.Context())
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestUnknownFormatOfADryRun(t *testing.T) {
	root := newRoot(nil)
	root.SetArgs([]string{"--dry-run", "-o", "xml"})
	if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `"xml"`) {
		t.Errorf("error %v", err)
	}
}
