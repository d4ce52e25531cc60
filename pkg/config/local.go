package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// LocalDatabase tells why there is nothing to wait for: the socket of the local
// Open vSwitch database is not there. It is for who asks once; a daemon waits, since
// Open vSwitch may start later.
func (c *Config) LocalDatabase() error {
	path, local := strings.CutPrefix(c.OVN.VSwitch, "unix:")
	if !local || strings.Contains(path, ",") {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("local Open vSwitch database: %s does not exist: start Open vSwitch, or set ovn.vswitch", path)
}

// Files tells which files that the configuration names cannot be read.
func (c *Config) Files() error {
	var errs []error
	for i := range c.BGP.Neighbors {
		_, err := c.BGP.Neighbors[i].ReadPassword()
		errs = append(errs, err)
	}
	files := []namedFile{
		{"ovn.tls.privateKey", c.OVN.TLS.PrivateKey}, {"ovn.tls.certificate", c.OVN.TLS.Certificate}, {"ovn.tls.caCert", c.OVN.TLS.CACert},
		{"http.webConfig", c.HTTP.WebConfig},
	}
	for _, f := range append(files, c.Metadata.files()...) {
		if err := f.read(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.key, err))
		}
	}
	return errors.Join(errs...)
}

// namedFile is a file, or a directory, that a key names.
type namedFile struct{ key, path string }

func (f namedFile) read() error {
	if f.path == "" {
		return nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	return file.Close()
}
