package cloudinit

import (
	"archive/tar"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

//go:embed boot.sh
var bootScript string

// Root is a root directory with cloud-init.
type Root struct{ dir string }

// Debian finds the root of a Debian release, and makes it if it is not in the cache.
// Script is tools/cloudinit.sh.
func Debian(ctx context.Context, script, suite string) (Root, error) {
	cmd := exec.CommandContext(ctx, script, suite)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return Root{}, fmt.Errorf("cloud-init of Debian %s: %w\n%s", suite, err, problems.String())
	}
	return Root{dir: strings.TrimSpace(string(out))}, nil
}

// Version is that of the package cloud-init.
func (r Root) Version() (string, error) {
	list, err := os.ReadFile(filepath.Join(r.dir, "versions"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(list)) {
		if name, version, _ := strings.Cut(strings.TrimSpace(line), "\t"); name == "cloud-init" {
			return version, nil
		}
	}
	return "", fmt.Errorf("%s has no cloud-init", r.dir)
}

// Stage is a part of a boot.
type Stage string

// The stages that read metadata. Local comes before the network is configured: it gets
// an address by DHCP and gives it back. Network finds the network up.
const (
	Local   Stage = "init --local"
	Network Stage = "init"
)

// Result is what cloud-init stored.
type Result struct {
	// DataSource is such as "DataSourceOpenStackLocal [net,ver=2]".
	DataSource string
	// URL is where it read from.
	URL        string
	InstanceID string
	UserData   []byte
	// VendorData and VendorData2 are as they came.
	VendorData, VendorData2 string
	// Log is /var/log/cloud-init.log.
	Log string
}

// Boot runs stages in a network namespace, given as a file such as /run/netns/NAME, on a
// VM that nobody has booted before.
func (r Root) Boot(ctx context.Context, netns string, stages ...Stage) (Result, error) {
	place, err := os.MkdirTemp("", "sluice-cloud-init-")
	if err != nil {
		return Result{}, err
	}
	defer os.Remove(place)
	args := []string{"--net=" + netns, "--", "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--uts", "--ipc",
		"sh", "-euc", bootScript, "boot", filepath.Join(r.dir, "root"), place}
	for _, s := range stages {
		args = append(args, string(s))
	}
	cmd := exec.CommandContext(ctx, "nsenter", args...)
	// cloud-init knows by the environment of the first process that it is a machine of
	// Nova's, in a container.
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "product_name=OpenStack Nova", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	runErr := cmd.Run()
	files, err := untar(&out)
	if err != nil {
		return Result{}, errors.Join(fmt.Errorf("cloud-init: %w\n%s", err, said.String()), runErr)
	}
	res := files.result()
	if runErr != nil {
		return res, fmt.Errorf("cloud-init: %w\n%s", runErr, said.String())
	}
	return res, nil
}

// files are those that a run left, by their paths.
type files map[string][]byte

func untar(in io.Reader) (files, error) {
	out := files{}
	for t := tar.NewReader(in); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("what it left: %w", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if out[strings.TrimPrefix(h.Name, "./")], err = io.ReadAll(t); err != nil {
			return nil, fmt.Errorf("what it left: %w", err)
		}
	}
}

func (f files) result() Result {
	res := Result{Log: string(f["var/log/cloud-init.log"])}
	res.InstanceID = strings.TrimSpace(string(f["var/lib/cloud/data/instance-id"]))
	instance := "var/lib/cloud/instances/" + res.InstanceID + "/"
	res.UserData = f[instance+"user-data.txt"]
	res.VendorData, res.VendorData2 = string(f[instance+"vendor-data.txt"]), string(f[instance+"vendor-data2.txt"])
	// "DataSource: description"
	_, res.DataSource, _ = strings.Cut(strings.TrimSpace(string(f[instance+"datasource"])), ": ")
	for line := range strings.Lines(res.Log) {
		if _, url, ok := strings.Cut(line, "Using metadata source: "); ok {
			res.URL = strings.Trim(strings.TrimSpace(url), "'")
		}
	}
	return res
}

// Problems are the warnings and errors of the log.
func (r Result) Problems() []string {
	var out []string
	for line := range strings.Lines(r.Log) {
		for _, level := range []string{"[WARNING]", "[ERROR]", "[CRITICAL]", "Traceback"} {
			if strings.Contains(line, level) {
				out = append(out, strings.TrimSpace(line))
			}
		}
	}
	return out
}
