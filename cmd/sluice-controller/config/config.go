package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

// DefaultPath is where sluice-controller looks for its configuration.
const DefaultPath = "/etc/sluice/controller.yaml"

// Config is the whole file.
type Config struct {
	// Log is what is written to standard error.
	Log logging.Config `yaml:"log"`
	// HTTP is where clients reach the APIs.
	HTTP HTTP `yaml:"http"`
	// OVN is the Northbound database, the only store.
	OVN OVN `yaml:"ovn"`
	// Auth is who may call the APIs.
	Auth Auth `yaml:"auth"`
	// Neutron is where ports of VIPs are made in networks that Neutron wrote.
	Neutron Neutron `yaml:"neutron"`
	// Networks has the projects whose members may place VIPs and members of pools in a network,
	// by the network's ID: OVN does not know whose a network is. Administrators may use each.
	Networks map[string][]string `yaml:"networks"`
}

// HTTP is where clients reach the APIs.
type HTTP struct {
	// Listen is ADDRESS:PORT of the APIs, and of /metrics, /livez and /readyz.
	Listen string `yaml:"listen"`
	// Certificate is a PEM file with the server's certificate. Empty, like privateKey: no TLS.
	// Files that have changed count from the next connection on.
	Certificate string `yaml:"certificate"`
	// PrivateKey is the PEM file of its key.
	PrivateKey string `yaml:"privateKey"`
	// ClientCA is a PEM file of the authorities that sign clients' certificates. Empty: clients
	// need none.
	ClientCA string `yaml:"clientCA"`
	// MostRequests is the number of requests at once; another one gets 503.
	MostRequests int `yaml:"mostRequests"`
	// Timeout bounds a request, with all tries of its transaction.
	Timeout configfile.Duration `yaml:"timeout"`
}

// OVN is the Northbound database, the only store, and what is read of OVN besides.
type OVN struct {
	// NB is a list of endpoints (unix:PATH, tcp:HOST:PORT, ssl:HOST:PORT), separated by commas. Of
	// a cluster the leader is used.
	NB string `yaml:"nb"`
	// SB is the Southbound database, in the same form; it is read only. Empty: none; members that
	// health monitors watch keep the operating status that they have.
	SB string `yaml:"sb"`
	// TLS is used for endpoints that start with ssl:.
	TLS TLS `yaml:"tls"`
}

// TLS names the files of a client certificate for endpoints that start with ssl:, in PEM form.
type TLS struct {
	// PrivateKey is the file of the key.
	PrivateKey string `yaml:"privateKey"`
	// Certificate is the file of the client certificate.
	Certificate string `yaml:"certificate"`
	// CACert is the file of the authority that signed the servers' certificates.
	CACert string `yaml:"caCert"`
}

// Neutron is where ports of VIPs are made in networks that Neutron wrote.
type Neutron struct {
	// URL is Neutron's own API, without a version, such as https://neutron.example:9696. Empty: a VIP in
	// such a network needs a port that is there (vip_port_id).
	URL string `yaml:"url"`
	// TokenFile is a file with the token of a caller who may make ports with fixed addresses for each
	// project. It is read for each call, so that another program can renew the token. Empty: none is sent.
	TokenFile string `yaml:"tokenFile"`
	// CACert is the file of the authority that signed Neutron's certificate. Empty: the system's.
	CACert string `yaml:"caCert"`
}

// Auth is who may call the APIs.
type Auth struct {
	// Mode is none: everybody is an administrator, on loopback addresses only; or tokens: who has
	// a token of the file tokens.
	Mode Mode `yaml:"mode"`
	// Anywhere allows mode none on each address.
	Anywhere bool `yaml:"anywhere"`
	// Project is the ID of the project that callers act for in mode none.
	Project string `yaml:"project"`
	// Tokens is a YAML file: a list "tokens" of token, project and roles (admin, member, reader).
	// It is read again when it has changed.
	Tokens string `yaml:"tokens"`
}

// Mode is a way to tell who calls.
type Mode string

// The modes.
const (
	ModeNone   Mode = "none"
	ModeTokens Mode = "tokens"
)

// UnmarshalText reads a mode.
func (m *Mode) UnmarshalText(b []byte) error { return configfile.OneOf(m, b, ModeNone, ModeTokens) }

// Default is what an empty file gives.
func Default() *Config {
	return &Config{
		Log:  logging.Config{Level: "info", Format: "text"},
		HTTP: HTTP{Listen: "127.0.0.1:9876", MostRequests: 200, Timeout: configfile.Duration{Duration: 30 * time.Second}},
		OVN:  OVN{NB: "unix:/run/ovn/ovnnb_db.sock"},
		Auth: Auth{Mode: ModeNone, Project: "default"},
	}
}

// Load reads and checks the file. Mistakes in it are configfile.Errors.
func Load(path string) (*Config, error) {
	c := Default()
	if err := configfile.Load(path, c, c.check); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) check(k *configfile.Checker) {
	k.ListenAddress("http.listen", c.HTTP.Listen)
	for key, path := range map[string]string{
		"http.certificate": c.HTTP.Certificate, "http.privateKey": c.HTTP.PrivateKey, "http.clientCA": c.HTTP.ClientCA,
		"ovn.tls.privateKey": c.OVN.TLS.PrivateKey, "ovn.tls.certificate": c.OVN.TLS.Certificate, "ovn.tls.caCert": c.OVN.TLS.CACert,
		"auth.tokens": c.Auth.Tokens, "neutron.tokenFile": c.Neutron.TokenFile, "neutron.caCert": c.Neutron.CACert,
	} {
		if path != "" {
			k.Absolute(key, path)
		}
	}
	switch {
	case c.Auth.Mode == ModeTokens && c.Auth.Tokens == "":
		k.FailAt("auth.tokens", "mode tokens needs a file")
	case c.Auth.Mode == ModeNone && !c.Auth.Anywhere && !loopback(c.HTTP.Listen):
		k.FailAt("auth.mode", "none makes everybody an administrator, and http.listen is no loopback address: use tokens, or set auth.anywhere")
	}
	if (c.HTTP.Certificate == "") != (c.HTTP.PrivateKey == "") {
		k.FailAt("http.certificate", "certificate and privateKey need each other")
	}
	c.Neutron.check(k)
	if c.OVN.NB == "" {
		k.FailAt("ovn.nb", "names no endpoint")
	}
	if c.HTTP.MostRequests < 1 {
		k.FailAt("http.mostRequests", "has to be at least 1")
	}
	if c.HTTP.Timeout.Duration < time.Second {
		k.FailAt("http.timeout", "has to be at least 1s")
	}
}

func (n Neutron) check(k *configfile.Checker) {
	if n.URL == "" {
		if n.TokenFile != "" || n.CACert != "" {
			k.FailAt("neutron.url", "has to be set where tokenFile or caCert is")
		}
		return
	}
	u, err := url.Parse(n.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.FailAt("neutron.url", "want http://HOST:PORT or https://HOST:PORT")
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v2.0"):
		k.FailAt("neutron.url", "without the version /v2.0")
	case u.Scheme == "http" && n.TokenFile != "" && !loopback(net.JoinHostPort(u.Hostname(), "0")):
		k.FailAt("neutron.url", "http would show the token of tokenFile to the network: use https")
	case u.Scheme == "http" && n.CACert != "":
		k.FailAt("neutron.caCert", "is for https")
	}
}

func loopback(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}
