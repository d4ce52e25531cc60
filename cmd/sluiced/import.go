package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/config/neutron"
	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// defaultSecretFile is where the shared secret is put.
const defaultSecretFile = "/etc/sluice/metadata-secret"

// maxImported bounds a file of Neutron's, in bytes: the samples with all comments have
// 100 kB.
const maxImported = 8 << 20

// importNeutron prints the configuration that files of Neutron's metadata agent amount to.
// The secret is not printed, but written to a file of its own.
func importNeutron(w io.Writer, files []string, secretFile string) error {
	secretFile, err := filepath.Abs(secretFile)
	if err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	var o neutron.Options
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
	if err := keepSecret(secretFile, r); err != nil {
		return err
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
// may be in use.
func keepSecret(path string, r neutron.Result) error {
	there, err := firstLine(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !r.HasSecret:
		return fmt.Errorf("metadata_proxy_shared_secret is in none of these files; give the one that has it too, or write the secret to %s", path)
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("--secret-file: %w", err)
	case !r.HasSecret && there == "":
		return fmt.Errorf("metadata_proxy_shared_secret is in none of these files, and %s is empty; give the one that has it too", path)
	case !r.HasSecret || there == r.Secret:
		return nil
	default:
		return fmt.Errorf("--secret-file: %s has another secret; remove it, or name another file", path)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	// statefile makes files that only their owner can read.
	if err := statefile.Write(path, []byte(r.Secret+"\n")); err != nil {
		return fmt.Errorf("--secret-file: %w", err)
	}
	return nil
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
