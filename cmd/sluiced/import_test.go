package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The configuration that is printed is one that sluiced takes, with the files that it
// names; the secret is in a file for root alone, and nowhere else.
func TestImport(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	agent := write("agent.ini", "[DEFAULT]\nnova_metadata_host = 192.0.2.1\nmetadata_workers = 2\n[ovn]\novn_sb_connection = tcp:192.0.2.2:6642\n")
	more := write("neutron.conf", "[DEFAULT]\nmetadata_proxy_shared_secret = correct horse\nnova_metadata_host = 192.0.2.3\n")
	secret := filepath.Join(dir, "etc", "secret")
	sluiced := func(args ...string) (string, error) {
		root := newRoot(nil)
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetArgs(args)
		err := root.ExecuteContext(t.Context())
		return out.String(), err
	}
	for name, text := range map[string]string{"none.ini": "", "empty.ini": "[DEFAULT]\nmetadata_proxy_shared_secret =\n"} {
		out, err := sluiced("--import-neutron-config", agent, write(name, text), "--secret-file", secret)
		if err != nil || !strings.Contains(out, "warning: metadata_proxy_shared_secret is in none") || !strings.Contains(out, "# Not quite the same:") || strings.Contains(out, "secretFile:") {
			t.Errorf("without a secret: %v\n%s", err, out)
		}
		_, config, _ := strings.Cut(out, "\n") // behind the warning
		if checked, err := sluiced("--check", write("secretless.yaml", config)); err != nil || !strings.Contains(checked, "warning: metadata.nova.secretFile is not set") {
			t.Errorf("what is imported without a secret: %v\n%s", err, checked)
		}
	}
	out, err := sluiced("--import-neutron-config", agent, more, "--secret-file", secret)
	if err != nil || strings.Contains(out, "horse") || !strings.Contains(out, "hosts: [192.0.2.3]") || !strings.Contains(out, "metadata_workers: one process") {
		t.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(secret)
	info, statErr := os.Stat(secret)
	if err != nil || statErr != nil || string(text) != "correct horse\n" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v %v", text, err, info.Mode(), statErr)
	}
	checked, err := sluiced("--check", write("sluiced.yaml", out))
	if err != nil || !strings.Contains(checked, "secretFile: "+secret) {
		t.Errorf("%v\n%s", err, checked)
	}
	const warning = "ovn.nb is not set"
	respect := strings.Replace(out, "metadata:\n", "metadata:\n  securityGroups: respect\n", 1)
	for text, warns := range map[string]bool{out: false, respect: true, strings.Replace(respect, "ovn:\n", "ovn:\n  nb: tcp:192.0.2.2:6641\n", 1): false} {
		checked, err := sluiced("--check", write("respect.yaml", text))
		if err != nil || strings.Contains(checked, warning) != warns {
			t.Errorf("%v\n%s", err, checked)
		}
	}
	for text, warns := range map[string]bool{"{instance}": true, "{project}/{instance}": false, "{port}": false} {
		checked, err := sluiced("--check", write("template.yaml", "roles: none\nmetadata: {backend: template, template: 'http://192.0.2.1/"+text+"'}\n"))
		if err != nil || strings.Contains(checked, "{instance} without {project}") != warns {
			t.Errorf("%s: %v\n%s", text, err, checked)
		}
	}
	bad := write("bad.yaml", "roles: none\nmetadata: {backend: template, template: 'http://192.0.2.1/{uuid}'}\n")
	_, err = sluiced("--check", bad)
	if want := bad + ":2:41: metadata.template: \"http://192.0.2.1/{uuid}\": {uuid} is none of instance, project, network, port, address"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	// Again, and without the file that has the secret: it is there.
	for _, args := range [][]string{{agent, more}, {agent}} {
		if out, err := sluiced(append([]string{"--secret-file", secret, "--import-neutron-config"}, args...)...); err != nil {
			t.Errorf("again: %v\n%s", err, out)
		}
	}
	other := write("other.ini", "[DEFAULT]\nmetadata_proxy_shared_secret = battery staple\n")
	if out, err := sluiced("--secret-file", secret, "--import-neutron-config", other); err == nil || !strings.Contains(err.Error(), "has another secret") || strings.Contains(err.Error(), "staple") || strings.Contains(err.Error(), "horse") {
		t.Errorf("another secret: %v\n%s", err, out)
	}
	if text, err := os.ReadFile(secret); err != nil || string(text) != "correct horse\n" {
		t.Errorf("%q %v", text, err)
	}
	for name, args := range map[string][]string{
		"no such file":     {"--import-neutron-config", filepath.Join(dir, "none")},
		"a broken file":    {"--import-neutron-config", write("broken.ini", "x"), "--secret-file", secret},
		"words without it": {"word"},
	} {
		if out, err := sluiced(args...); err == nil {
			t.Errorf("%s: %s", name, out)
		}
	}
}
