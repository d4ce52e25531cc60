package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the file: a configuration is never this long.
const maxFile = 8 << 20

// Load reads and checks the file. Mistakes in it are returned as Errors.
func Load(path string) (*Config, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if len(b) > maxFile {
		return nil, fmt.Errorf("configuration: %s is longer than %d bytes", path, maxFile)
	}
	return Parse(path, b)
}

// Parse checks the text of a file; name is what mistakes are reported with.
// They are returned as Errors.
func Parse(name string, text []byte) (*Config, error) {
	d := &decoder{file: name, at: map[string]position{}}
	c := Default()
	root, err := document(name, text)
	if err != nil {
		return nil, Errors{err}
	}
	if root != nil {
		d.value(root, reflect.ValueOf(c).Elem(), "")
	}
	complete(c)
	// The rules are checked on what could be read, too; a value that could not
	// be read is reported once.
	bad := map[string]bool{}
	for _, e := range d.errs {
		bad[e.Key] = true
	}
	checked := len(d.errs)
	d.validate(c)
	errs := d.errs[:checked]
	for _, e := range d.errs[checked:] {
		if !bad[e.Key] {
			errs = append(errs, e)
		}
	}
	if len(errs) > 0 {
		errs.sort()
		return nil, errs
	}
	return c, nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// document is the root node, nil for an empty file.
func document(name string, text []byte) (*yaml.Node, *Error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		e := &Error{File: name, Text: err.Error()}
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			e.Line, _ = strconv.Atoi(m[1])
			e.Text = "not YAML: " + m[2] + "; check indentation and quotes"
		}
		return nil, e
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{File: name, Line: max(second.Line, 1), Text: `more than one document; remove what follows the line "---"`}
	}
	return doc.Content[0], nil
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
func (c *Config) Effective() ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("printing the configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("printing the configuration: %w", err)
	}
	return b.Bytes(), nil
}
