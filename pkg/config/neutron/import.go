package neutron

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// DefaultSecretFile is where the shared secret is put.
const DefaultSecretFile = "/etc/sluice/metadata-secret"

// maxImported bounds a file of Neutron's, in bytes: the samples with all comments have
// 100 kB.
const maxImported = 8 << 20

// Import prints the configuration that files of Neutron's metadata agent amount to.
// The secret is not printed, but written to a file of its own.
func Import(w, warnings io.Writer, files []string, secretFile string) error {
	secretFile, err := filepath.Abs(secretFile)
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	var o Options
	for _, file := range files {
		text, err := readImported(file)
		if err == nil {
			err = o.Read(file, text)
		}
		if err != nil {
			return err
		}
	}
	r, err := o.Convert(secretFile)
	if err != nil {
		return err
	}
	kept, err := keepSecret(secretFile, r)
	if err != nil {
		return err
	}
	if !kept {
		if r, err = o.Convert(""); err != nil {
			return err
		}
		fmt.Fprintln(warnings, "sluiced: warning: metadata_proxy_shared_secret is in none of these files, or empty; Sluice would ask Nova without a secret. If Nova has one, give the file with it, too")
	}
	_, err = w.Write(r.YAML)
	return err
}

func readImported(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxImported+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxImported {
		return "", fmt.Errorf("%s is longer than %d bytes", file, maxImported)
	}
	return string(text), nil
}

// keepSecret writes the secret, for root alone. A file with another one is left alone: it
// may be in use. kept: the file has a secret, from now on or from before.
func keepSecret(path string, r Result) (kept bool, err error) {
	there, err := firstLine(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return false, fmt.Errorf("--secret-file: %w", err)
	case there != "" && (!r.HasSecret || there == r.Secret):
		return true, nil
	case there != "" || r.HasSecret:
		return false, fmt.Errorf("--secret-file: %s has another secret; remove it, or name another file", path)
	}
	if !r.HasSecret {
		return false, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, fmt.Errorf("--secret-file: %w", err)
	}
	// statefile makes files that only their owner can read.
	if err := statefile.Write(path, []byte(r.Secret+"\n")); err != nil {
		return false, fmt.Errorf("--secret-file: %w", err)
	}
	return true, nil
}

func firstLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	return strings.TrimSpace(line), nil
}
