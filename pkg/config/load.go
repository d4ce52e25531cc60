package config

import (
	"net/netip"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// Checks are those of values that only packages above this one can read. Each tells what is
// wrong with a value.
type Checks struct {
	// MetadataTemplate checks metadata.template. nil: any text is taken.
	MetadataTemplate func(string) error
}

// Load reads and checks the file. Mistakes in it are returned as configfile.Errors.
func Load(path string, checks Checks) (*Config, error) {
	c := Default()
	if err := configfile.Load(path, c, c.check(checks)); err != nil {
		return nil, err
	}
	return c, nil
}

// Parse checks the text of a file, without Checks; name is what mistakes are reported with.
// They are returned as configfile.Errors.
func Parse(name string, text []byte) (*Config, error) {
	c := Default()
	if err := configfile.Parse(name, text, c, c.check(Checks{})); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Config) check(checks Checks) func(*configfile.Checker) {
	return func(k *configfile.Checker) {
		complete(c)
		rules{k, checks}.validate(c)
	}
}

// complete fills in the defaults that depend on other values.
func complete(c *Config) {
	c.BGP.Listen = completeListen(c.BGP.Listen)
	for i := range c.BGP.Neighbors {
		n := &c.BGP.Neighbors[i]
		n.Address = n.Address.Unmap()
		n.LocalAddress = n.LocalAddress.Unmap()
		if n.ASN == 0 && !n.External {
			n.ASN = c.BGP.ASN
		}
		if n.ConnectRetry.Duration == 0 {
			n.ConnectRetry = c.BGP.ConnectRetry
		}
		if n.Keepalive.Duration == 0 {
			n.Keepalive.Duration = n.HoldTime.Duration / 3
		}
	}
	c.completeUnderlay()
	c.Fabric.VTEP = c.Fabric.VTEP.Unmap()
	for i, a := range c.Fabric.ICMPSource {
		c.Fabric.ICMPSource[i] = a.Unmap()
	}
	for i, a := range c.Fabric.TrustedVTEPs {
		c.Fabric.TrustedVTEPs[i] = a.Unmap()
	}
	for _, hops := range c.Fabric.NextHops {
		for i, a := range hops {
			hops[i] = a.Unmap()
		}
	}
}

// completeListen gives :PORT its address. What it cannot read is for validate.
func completeListen(s string) string {
	if strings.HasPrefix(s, ":") {
		s = "[::]" + s
	}
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		return s
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}

// Effective is the whole configuration with every default, as YAML. Secrets are
// redacted.
func (c *Config) Effective() ([]byte, error) { return configfile.Effective(c) }
