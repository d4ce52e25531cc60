package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

const (
	// The proxy's heart beats twice a second.
	minStaleAfter  = time.Second
	maxStaleAfter  = 5 * time.Minute
	minNovaTimeout = 100 * time.Millisecond
	maxNovaTimeout = 10 * time.Minute
	// maxMetadataRate is more than a VM asks for in any case.
	maxMetadataRate = 100_000
)

func (check rules) validateMetadata(c *Config) {
	m := &c.Metadata
	if t := m.StaleAfter.Duration; t < minStaleAfter || t > maxStaleAfter {
		check.FailAt("metadata.staleAfter", "%s does not fit; use %s to %s", m.StaleAfter, minStaleAfter, maxStaleAfter)
	}
	if m.Answer.IsZero() || !isStationMAC(m.Answer) {
		check.FailAt("metadata.answer", "%s is not a station's address; remove the key for %s", m.Answer, DefaultAnswer)
	}
	check.metadataBackend(m)
	check.validateNova(m)
	check.metadataLimits(m.Limits)
	check.metadataListeners(c)
}

// metadataBackend wants what the backend needs, and checks what is there for another.
func (check rules) metadataBackend(m *Metadata) {
	if m.Files != "" {
		check.Absolute("metadata.files", m.Files)
	} else if m.Used() && m.Backend == BackendFiles {
		check.FailAt("metadata.files", "missing; give the directory with those of the instances, such as /var/lib/sluice/instances")
	}
	if m.Template == "" {
		if m.Used() && m.Backend == BackendTemplate {
			check.FailAt("metadata.template", "missing; give a URL such as http://192.0.2.1:8080/{project}/{instance}")
		}
	} else if check.checks.MetadataTemplate != nil {
		if err := check.checks.MetadataTemplate(m.Template); err != nil {
			check.FailAt("metadata.template", "%q: %v", m.Template, err)
		}
	}
}

func (check rules) validateNova(m *Metadata) {
	n := &m.Nova
	if m.Used() && m.Backend == BackendNova {
		if len(n.Hosts) == 0 {
			check.FailAt("metadata.nova.hosts", "missing; give the addresses of Nova's metadata API, such as [192.0.2.1]")
		}
	}
	for i, h := range n.Hosts {
		key := fmt.Sprintf("metadata.nova.hosts[%d]", i)
		switch {
		case !isHost(h):
			check.FailAt(key, "%q is no address or name; write 192.0.2.1, 2001:db8::1 or nova.example.net, and the port as metadata.nova.port", h)
		case slices.Contains(n.Hosts[:i], h):
			check.FailAt(key, "%s is given twice; remove one", h)
		}
	}
	if n.Port == 0 {
		check.FailAt("metadata.nova.port", "0 is no TCP port; Nova's metadata API has 8775")
	}
	for _, f := range []struct{ key, path string }{
		{"caCert", n.CACert}, {"clientCert", n.ClientCert}, {"clientKey", n.ClientKey}, {"secretFile", n.SecretFile},
	} {
		if f.path != "" {
			check.Absolute("metadata.nova."+f.key, f.path)
		}
	}
	check.novaTLS(n)
	for _, t := range []struct {
		key string
		configfile.Duration
	}{{"connectTimeout", n.ConnectTimeout}, {"timeout", n.Timeout}} {
		if v := t.Duration.Duration; v < minNovaTimeout || v > maxNovaTimeout {
			check.FailAt("metadata.nova."+t.key, "%s does not fit; use %s to %s", t.Duration, minNovaTimeout, maxNovaTimeout)
		}
	}
	if n.ConnectTimeout.Duration > n.Timeout.Duration {
		check.FailAt("metadata.nova.connectTimeout", "%s is more than timeout (%s), which bounds the whole answer; lower this or raise that", n.ConnectTimeout, n.Timeout)
	}
}

// novaTLS finds files that nothing would look at: who gives them counts on them.
func (check rules) novaTLS(n *Nova) {
	if (n.ClientCert == "") != (n.ClientKey == "") {
		check.FailAt("metadata.nova", "give clientCert and clientKey, or none of them")
	}
	if n.Insecure && n.CACert != "" {
		check.FailAt("metadata.nova.insecure", "caCert is given too, and would have no effect; keep one of them")
	}
	if n.Protocol == ProtocolHTTPS {
		return
	}
	for _, f := range []struct {
		key   string
		given bool
	}{{"caCert", n.CACert != ""}, {"clientCert", n.ClientCert != ""}, {"insecure", n.Insecure}} {
		if f.given {
			check.FailAt("metadata.nova."+f.key, "is for TLS; set metadata.nova.protocol to https, or remove it")
		}
	}
}

// isHost tells whether a text is an address or a name, without a port.
func isHost(s string) bool {
	if a, err := netip.ParseAddr(s); err == nil {
		return !a.IsUnspecified() && !a.IsMulticast()
	}
	if s == "" || len(s) > 253 || strings.Trim(s, "0123456789.") == "" {
		return false
	}
	for label := range strings.SplitSeq(strings.TrimSuffix(s, "."), ".") {
		if label == "" || len(label) > 63 || strings.ContainsFunc(label, func(r rune) bool {
			return r != '-' && r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			return false
		}
	}
	return true
}

func (check rules) metadataLimits(l MetadataLimits) {
	if l.Connections == 0 || l.Connections > 65535 {
		check.FailAt("metadata.limits.connections", "%d is not possible; use 1 to 65535", l.Connections)
	}
	if l.Rate > maxMetadataRate {
		check.FailAt("metadata.limits.rate", "%d is not possible; use 1 to %d, or 0 for no limit", l.Rate, maxMetadataRate)
	}
	if l.Burst == 0 || l.Burst > maxMetadataRate {
		check.FailAt("metadata.limits.burst", "%d is not possible; use 1 to %d", l.Burst, maxMetadataRate)
	}
}

func (check rules) metadataListeners(c *Config) {
	m := &c.Metadata
	check.Socket("metadata.socket", m.Socket)
	if m.Socket == c.Admin.Socket {
		check.FailAt("metadata.socket", "%s is admin.socket, which another process uses; give each its own", m.Socket)
	}
	if m.Listen == "" {
		return
	}
	check.ListenAddress("metadata.listen", m.Listen)
	if m.Listen == c.HTTP.Listen && !strings.HasSuffix(m.Listen, ":0") {
		check.FailAt("metadata.listen", "%s is http.listen, which another process uses; give each its own", m.Listen)
	}
}
