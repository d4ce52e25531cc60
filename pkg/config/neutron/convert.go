package neutron

import (
	"bytes"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

// Result is Sluice's configuration of the same meaning.
type Result struct {
	// YAML is what config.Parse takes, with comments on what has no counterpart.
	YAML []byte
	// Secret is metadata_proxy_shared_secret, which YAML does not have. HasSecret: it is
	// given.
	Secret    string
	HasSecret bool
}

// document is Sluice's configuration, with nothing but what is said.
type document struct {
	Roles    string      `yaml:"roles"`
	OVN      ovnSection  `yaml:"ovn,omitempty"`
	Metadata metadata    `yaml:"metadata"`
	Log      *logSection `yaml:"log,omitempty"`
}

type ovnSection struct {
	SB              string      `yaml:"sb,omitempty"`
	NB              string      `yaml:"nb,omitempty"`
	VSwitch         string      `yaml:"vswitch,omitempty"`
	TLS             *tlsSection `yaml:"tls,omitempty"`
	InactivityProbe string      `yaml:"inactivityProbe,omitempty"`
}

type tlsSection struct {
	PrivateKey  string `yaml:"privateKey"`
	Certificate string `yaml:"certificate"`
	CACert      string `yaml:"caCert"`
}

type metadata struct {
	Backend string  `yaml:"backend"`
	Nova    nova    `yaml:"nova"`
	Limits  *limits `yaml:"limits,omitempty"`
}

type nova struct {
	Hosts      []string `yaml:"hosts,flow"`
	Port       uint16   `yaml:"port,omitempty"`
	Protocol   string   `yaml:"protocol,omitempty"`
	Insecure   bool     `yaml:"insecure,omitempty"`
	CACert     string   `yaml:"caCert,omitempty"`
	ClientCert string   `yaml:"clientCert,omitempty"`
	ClientKey  string   `yaml:"clientKey,omitempty"`
	SecretFile string   `yaml:"secretFile,omitempty"`
}

type limits struct {
	Rate  uint32 `yaml:"rate"`
	Burst uint32 `yaml:"burst"`
}

type logSection struct {
	Level string `yaml:"level"`
}

// converter goes through the options once.
type converter struct {
	o    *Options
	used map[name]bool
	// changed are remarks on what is not quite the same, and left on what is not taken
	// over.
	changed, left []string
	errs          []string
}

// Convert makes Sluice's configuration, in which secretFile has the shared secret; empty:
// nothing has.
func (o *Options) Convert(secretFile string) (Result, error) {
	c := &converter{o: o, used: map[name]bool{}}
	d := document{Roles: string(config.RoleNone), OVN: c.ovn(), Metadata: metadata{Backend: string(config.BackendNova), Nova: c.nova(secretFile), Limits: c.limits()}}
	if c.flag(defaults, "debug") {
		d.Log = &logSection{string(logging.LevelDebug)}
	}
	var r Result
	if r.Secret, r.HasSecret = c.secret(); secretFile == "" {
		c.changed = append(c.changed, "[DEFAULT] metadata_proxy_shared_secret is not in these files, or empty: Sluice asks Nova without a secret, as Neutron does. If Nova has one, import the file with it, too")
	}
	c.others()
	if len(c.errs) > 0 {
		return Result{}, fmt.Errorf("%s", strings.Join(c.errs, "\n"))
	}
	var b bytes.Buffer
	c.head(&b)
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	if err := e.Encode(d); err != nil {
		return Result{}, fmt.Errorf("writing YAML: %w", err)
	}
	if err := e.Close(); err != nil {
		return Result{}, fmt.Errorf("writing YAML: %w", err)
	}
	r.YAML = b.Bytes()
	if _, err := config.Parse("what these files say", r.YAML); err != nil {
		return Result{}, err
	}
	return r, nil
}

// head is the comments before all else.
func (c *converter) head(b *bytes.Buffer) {
	b.WriteString("# Written by sluiced --import-neutron-config from:\n")
	for _, f := range c.o.files {
		fmt.Fprintf(b, "#   %s\n", oneLine(f))
	}
	b.WriteString("# It is for metadata alone: on a gateway node, add its keys to the existing configuration,\n# without `roles: none`.\n")
	for _, part := range []struct {
		title string
		lines []string
	}{{"Not quite the same:", c.changed}, {"Not taken over:", c.left}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(b, "#\n# %s\n", part.title)
		}
		for _, l := range part.lines {
			fmt.Fprintf(b, "#   %s\n", oneLine(l))
		}
	}
}

// oneLine keeps a comment one, whatever is in a name.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r <= 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r == 0xfffd {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// text is the value of an option; one that is empty counts as not given.
func (c *converter) text(section, key string) (string, bool) {
	n := name{section, key}
	c.used[n] = true
	v, given, err := c.o.get(n)
	if err != nil {
		c.errs = append(c.errs, err.Error())
	}
	return v, given && v != ""
}

func (c *converter) fail(section, key, format string, args ...any) {
	c.errs = append(c.errs, name{section, key}.String()+" "+fmt.Sprintf(format, args...))
}

func (c *converter) change(section, key, format string, args ...any) {
	c.changed = append(c.changed, name{section, key}.String()+": "+fmt.Sprintf(format, args...))
}

// leave says why an option is not taken over, if it is given.
func (c *converter) leave(section, key, why string) {
	if _, given := c.text(section, key); given {
		c.left = append(c.left, name{section, key}.String()+": "+why)
	}
}

// flag is an option that is true or false (oslo_config.types.Boolean).
func (c *converter) flag(section, key string) bool {
	v, given := c.text(section, key)
	switch strings.ToLower(v) {
	case "true", "1", "on", "yes":
		return true
	case "false", "0", "off", "no", "":
		return false
	}
	if given {
		c.fail(section, key, "is neither true nor false")
	}
	return false
}
