package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMetadata(t *testing.T) {
	c, err := Parse("f.yaml", []byte(head))
	if err != nil || c.Metadata.Used() {
		t.Fatalf("an empty section: %+v, %v", c, err)
	}
	for text, used := range map[string]bool{
		"metadata: {backend: none}\n":                 false,
		"metadata: {backend: nova, enabled: false}\n": false,
		"metadata: {backend: nova, nova: {hosts: [192.0.2.1, \"2001:db8::1\", nova.example.net], secretFile: /s}}\n":                  true,
		"metadata: {backend: nova, nova: {hosts: [n], secretFile: /s, protocol: https, caCert: /c, clientCert: /a, clientKey: /k}}\n": true,
		"metadata: {backend: nova, nova: {hosts: [n], secretFile: /s, protocol: https, insecure: true}}\n":                            true,
		"metadata: {backend: nova, nova: {hosts: [n]}}\n":                                                                             true,
		"metadata: {backend: files, files: /srv/instances}\n":                                                                         true,
		"metadata: {backend: template, template: \"http://192.0.2.1:8080/{project}/{instance}\"}\n":                                   true,
		"metadata: {backend: template, template: \"https://[2001:db8::1]/{address}\", listen: \"\"}\n":                                true,
		"http: {listen: \"127.0.0.1:0\"}\nmetadata: {backend: files, files: /srv, listen: \"127.0.0.1:0\"}\n":                         true,
		"roles: none\nmetadata: {backend: files, files: /srv, limits: {rate: 5, burst: 40, connections: 8}, path: namespace}\n":       true,
	} {
		c, err := Parse("f.yaml", []byte(head+text))
		if err != nil {
			t.Errorf("%s%v", text, err)
			continue
		}
		if c.Metadata.Used() != used {
			t.Errorf("%sused: %t", text, !used)
		}
		again, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		if d, err := Parse("f.yaml", again); err != nil || !slices.Equal(d.Metadata.Nova.Hosts, c.Metadata.Nova.Hosts) || d.Metadata.Template != c.Metadata.Template {
			t.Errorf("what is printed says %+v, %v", d, err)
		}
	}
}

func TestMetadataMistakes(t *testing.T) {
	nova := func(s string) string {
		return head + "metadata:\n  backend: nova\n  nova: {hosts: [192.0.2.1], secretFile: /s, " + s + "}\n"
	}
	for text, want := range map[string]string{
		head + "metadata: {backend: nova}\n":                                              "f.yaml:5:11: metadata.nova.hosts: missing; give the addresses",
		head + "metadata: {backend: files}\n":                                             "metadata.files: missing; give the directory",
		head + "metadata: {backend: template}\n":                                          "metadata.template: missing; give a URL",
		head + "metadata: {backend: swift}\n":                                             `metadata.backend: "swift" is not allowed; use none, nova, files, template`,
		head + "metadata: {path: tap}\n":                                                  `metadata.path: "tap" is not allowed; use auto, ebpf, namespace`,
		head + "metadata: {securityGroups: obey}\n":                                       `is not allowed; use bypass, respect`,
		head + "metadata: {staleAfter: 100ms}\n":                                          "metadata.staleAfter: 100ms does not fit; use 1s to 5m0s",
		head + "metadata: {answer: \"01:00:00:00:00:00\"}\n":                              "metadata.answer: 01:00:00:00:00:00 is not a station's address",
		head + "metadata: {answer: \"\"}\n":                                               "metadata.answer: 00:00:00:00:00:00 is not a station's address",
		head + "metadata: {files: instances}\n":                                           `metadata.files: "instances" is not an absolute path`,
		head + "metadata: {limits: {connections: 0}}\n":                                   "metadata.limits.connections: 0 is not possible; use 1 to 65535",
		head + "metadata: {limits: {rate: 1000000}}\n":                                    "metadata.limits.rate: 1000000 is not possible",
		head + "metadata: {limits: {burst: 0}}\n":                                         "metadata.limits.burst: 0 is not possible",
		head + "metadata: {socket: m.sock}\n":                                             `metadata.socket: "m.sock" is not an absolute path`,
		head + "metadata: {socket: /run/sluice/sluiced.sock}\n":                           "metadata.socket: /run/sluice/sluiced.sock is admin.socket",
		head + "metadata: {socket: /" + strings.Repeat("a", 107) + "}\n":                  "metadata.socket: 108 characters; a socket's path has at most 107",
		head + "metadata: {listen: localhost}\n":                                          "metadata.listen: \"localhost\" is not an address to listen on",
		head + "metadata: {listen: \"127.0.0.1:9476\"}\n":                                 "metadata.listen: 127.0.0.1:9476 is http.listen",
		head + "metadata: {backend: nova, nova: {hosts: [\"a:80\"], secretFile: /s}}\n":   `metadata.nova.hosts[0]: "a:80" is no address or name`,
		head + "metadata: {backend: nova, nova: {hosts: [\"http://a\"], secretFile: /s}}": "is no address or name",
		head + "metadata: {backend: nova, nova: {hosts: [192.0.2], secretFile: /s}}":      `"192.0.2" is no address or name`,
		head + "metadata: {backend: nova, nova: {hosts: [0.0.0.0], secretFile: /s}}":      "is no address or name",
		head + "metadata: {backend: nova, nova: {hosts: [a, b, a], secretFile: /s}}":      "metadata.nova.hosts[2]: a is given twice",
		nova("port: 0"):                                     "metadata.nova.port: 0 is no TCP port",
		nova("protocol: HTTPS"):                             "is not allowed; use http, https",
		nova("caCert: /c"):                                  "f.yaml:7:54: metadata.nova.caCert: is for TLS; set metadata.nova.protocol to https, or remove it",
		nova("insecure: true"):                              "metadata.nova.insecure: is for TLS",
		nova("clientCert: /c, clientKey: /k"):               "metadata.nova.clientCert: is for TLS",
		nova("protocol: https, clientKey: /k"):              "metadata.nova: give clientCert and clientKey, or none of them",
		nova("protocol: https, caCert: /c, insecure: true"): "metadata.nova.insecure: caCert is given too",
		nova("protocol: https, caCert: c.pem"):              `metadata.nova.caCert: "c.pem" is not an absolute path`,
		nova("connectTimeout: 10ms"):                        "metadata.nova.connectTimeout: 10ms does not fit; use 100ms to 10m0s",
		nova("timeout: 0s"):                                 "metadata.nova.timeout: 0s does not fit",
		nova("connectTimeout: 20s, timeout: 10s"):           "metadata.nova.connectTimeout: 20s is more than timeout (10s)",
	} {
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v\nwant %s", text, err, want)
		}
	}
}

// A template is checked by the package that reads it, and the mistake is where it is in the file.
func TestMetadataTemplate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f.yaml")
	text := head + "metadata:\n  backend: template\n  template: http://a/{instance\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var asked string
	answer := errors.New("a brace has no other end")
	check := func(s string) error { asked = s; return answer }
	_, err := Load(file, Checks{MetadataTemplate: check})
	if want := file + ":7:13: metadata.template: \"http://a/{instance\": a brace has no other end"; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	answer = nil
	if c, err := Load(file, Checks{MetadataTemplate: check}); err != nil || asked != c.Metadata.Template {
		t.Errorf("asked for %q: %v", asked, err)
	}
}

// What the backend needs has to be there; what another would need has not.
func TestMetadataFiles(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "secret")
	if err := os.WriteFile(there, []byte("s\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "none")
	for text, want := range map[string]string{
		"metadata: {backend: nova, nova: {hosts: [a], secretFile: " + there + "}}":                                                                         "",
		"metadata: {backend: nova, nova: {hosts: [a], secretFile: " + missing + "}}":                                                                       "metadata.nova.secretFile: open ",
		"metadata: {backend: nova, nova: {hosts: [a], protocol: https, secretFile: " + there + ", caCert: " + missing + "}}":                               "metadata.nova.caCert: ",
		"metadata: {backend: nova, nova: {hosts: [a], protocol: https, secretFile: " + there + ", clientCert: " + missing + ", clientKey: " + there + "}}": "metadata.nova.clientCert: ",
		"metadata: {backend: nova, nova: {hosts: [a], protocol: https, secretFile: " + there + ", clientCert: " + there + ", clientKey: " + missing + "}}": "metadata.nova.clientKey: ",
		"metadata: {backend: nova, enabled: false, nova: {hosts: [a], secretFile: " + missing + "}}":                                                       "",
		"metadata: {backend: files, files: " + dir + "}":                                                                                                   "",
		"metadata: {backend: files, files: " + missing + "}":                                                                                               "metadata.files: ",
		"metadata: {backend: none, files: " + missing + "}":                                                                                                "",
	} {
		c, err := Parse("f.yaml", []byte("roles: none\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		err = c.Files()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, os.ErrNotExist)) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
