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
	// Log is the log on standard error.
	Log logging.Config `yaml:"log"`
	// HTTP is where clients reach the APIs.
	HTTP HTTP `yaml:"http"`
	// OVN is the databases: Northbound, the only store, and Southbound, which is only read.
	OVN OVN `yaml:"ovn"`
	// Auth is who may call the APIs.
	Auth Auth `yaml:"auth"`
	// Neutron is the API that creates the ports of VIPs in networks of Neutron.
	Neutron Neutron `yaml:"neutron"`
	// Networks are the projects whose members may place VIPs and members of pools in a network, by
	// the network's ID: OVN does not record the owner of a network. Administrators may use every
	// network.
	Networks map[string][]string `yaml:"networks"`
}

// HTTP is where clients reach the APIs.
type HTTP struct {
	// Listen is ADDRESS:PORT of the APIs, and of /metrics, /livez and /readyz.
	Listen string `yaml:"listen"`
	// Certificate is a PEM file with the server's certificate. Empty, like privateKey: no TLS. A
	// file that has changed takes effect with the next connection.
	Certificate string `yaml:"certificate"`
	// PrivateKey is the PEM file of its key.
	PrivateKey string `yaml:"privateKey"`
	// ClientCA is a PEM file of the authorities that sign clients' certificates. Empty: clients
	// need no certificate.
	ClientCA string `yaml:"clientCA"`
	// MostRequests is the largest number of requests at once; further ones get 503.
	MostRequests int `yaml:"mostRequests"`
	// Timeout bounds a request, with all tries of its transaction.
	Timeout configfile.Duration `yaml:"timeout"`
}

// OVN is the databases: Northbound, the only store, and Southbound, which is only read.
type OVN struct {
	// NB is the Northbound database: one or more endpoints (unix:PATH, tcp:HOST:PORT,
	// ssl:HOST:PORT), separated by commas. In a cluster, the leader is used.
	NB string `yaml:"nb"`
	// SB is the Southbound database, endpoints as in nb. Empty: none; the operating status of
	// members with a health monitor then stays as it is.
	SB string `yaml:"sb"`
	// TLS is used for endpoints that start with ssl:.
	TLS TLS `yaml:"tls"`
}

// TLS is the client certificate for endpoints that start with ssl:, in PEM files.
type TLS struct {
	// PrivateKey is the file of the key.
	PrivateKey string `yaml:"privateKey"`
	// Certificate is the file of the client certificate.
	Certificate string `yaml:"certificate"`
	// CACert is the file of the authority that signed the servers' certificates.
	CACert string `yaml:"caCert"`
}

// Neutron is the API that creates the ports of VIPs in networks of Neutron.
type Neutron struct {
	// URL is the URL of Neutron's own API, without a version, such as https://neutron.example:9696.
	// Empty: a VIP in such a network needs an existing port (vip_port_id).
	URL string `yaml:"url"`
	// TokenFile is a file with the token of a user who may create ports with fixed addresses for
	// every project. It is read for each call, so that another program can renew the token. Empty:
	// no token is sent.
	TokenFile string `yaml:"tokenFile"`
	// CACert is the file of the authority that signed Neutron's certificate. Empty: the system's.
	CACert string `yaml:"caCert"`
}

// Auth is who may call the APIs.
type Auth struct {
	// Mode is who may call. none: everybody, as an administrator, on loopback addresses only.
	// tokens: whoever has a token of the file tokens.
	Mode Mode `yaml:"mode"`
	// Anywhere allows mode none on every address.
	Anywhere bool `yaml:"anywhere"`
	// Project is the ID of the project of callers in mode none.
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
		k.FailAt("auth.tokens", "missing; mode tokens needs a file")
	case c.Auth.Mode == ModeNone && !c.Auth.Anywhere && !loopback(c.HTTP.Listen):
		k.FailAt("auth.mode", "none makes everybody an administrator, and http.listen is no loopback address; use tokens, or set auth.anywhere")
	}
	if (c.HTTP.Certificate == "") != (c.HTTP.PrivateKey == "") {
		k.FailAt("http.certificate", "give certificate and privateKey, or none of them")
	}
	c.Neutron.check(k)
	if c.OVN.NB == "" {
		k.FailAt("ovn.nb", "missing; give an endpoint, such as unix:/run/ovn/ovnnb_db.sock")
	}
	if c.HTTP.MostRequests < 1 {
		k.FailAt("http.mostRequests", "%d is not possible; use 1 or more", c.HTTP.MostRequests)
	}
	if c.HTTP.Timeout.Duration < time.Second {
		k.FailAt("http.timeout", "%s does not fit; use 1s or more", c.HTTP.Timeout)
	}
}

func (n Neutron) check(k *configfile.Checker) {
	if n.URL == "" {
		if n.TokenFile != "" || n.CACert != "" {
			k.FailAt("neutron.url", "missing; tokenFile and caCert need it")
		}
		return
	}
	u, err := url.Parse(n.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
		k.FailAt("neutron.url", "is not the URL of an API; write http://HOST:PORT or https://HOST:PORT")
	case strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/v2.0"):
		k.FailAt("neutron.url", "write it without the version /v2.0")
	case u.Scheme == "http" && n.TokenFile != "" && !loopback(net.JoinHostPort(u.Hostname(), "0")):
		k.FailAt("neutron.url", "http would show the token of tokenFile to the network; use https")
	case u.Scheme == "http" && n.CACert != "":
		k.FailAt("neutron.caCert", "is for https; write neutron.url with https, or remove it")
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
