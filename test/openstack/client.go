package openstack

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Client is the openstack command in a root directory of its own.
type Client struct{ root string }

// NewClient makes the root directory, if need be, by script: tools/openstack.sh.
func NewClient(ctx context.Context, script string) (Client, error) {
	cmd := exec.CommandContext(ctx, script, "trixie")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return Client{}, fmt.Errorf("the OpenStack client of Debian: %w\n%s", err, problems.String())
	}
	return Client{filepath.Join(strings.TrimSpace(string(out)), "root")}, nil
}

// inRoot runs a command there, with a clean environment.
func (c Client) inRoot() []string {
	return []string{"chroot", c.root, "env", "-i", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "PYTHONDONTWRITEBYTECODE=1"}
}

// Script is a shell script that is the command openstack, with what its environment has of these variables.
func (c Client) Script() string {
	script := "#!/bin/sh\nexec " + strings.Join(c.inRoot(), " ")
	for _, name := range []string{"OS_AUTH_TYPE", "OS_ENDPOINT", "OS_TOKEN", "OS_PROJECT_ID", "OS_CACERT", "OS_INSECURE"} {
		script += fmt.Sprintf(` ${%s:+%s="$%s"}`, name, name, name)
	}
	return script + ` openstack "$@"` + "\n"
}

// Run runs the command at an address without authentication, and returns what it has printed.
func (c Client) Run(ctx context.Context, address string, args ...string) (string, error) {
	out, problems, err := c.run(ctx, nil, append([]string{"OS_AUTH_TYPE=none", "OS_ENDPOINT=http://" + address, "openstack"}, args...)...)
	return strings.TrimSpace(out + "\n" + problems), err
}

// Python runs a program that has openstacksdk, and returns its standard output.
func (c Client) Python(ctx context.Context, program io.Reader, args ...string) (string, error) {
	out, _, err := c.run(ctx, program, append([]string{"python3", "-"}, args...)...)
	return out, err
}

// run runs a command, with its environment before it, in the root directory. It returns what the command
// has written to standard output and to standard error.
func (c Client) run(ctx context.Context, in io.Reader, command ...string) (string, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	argv := slices.Concat(c.inRoot(), command)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	var out, problems strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &problems
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%q: %w: %s", command, err, strings.TrimSpace(out.String()+"\n"+problems.String()))
	}
	return strings.TrimSpace(out.String()), strings.TrimSpace(problems.String()), err
}

// Controller is a running sluice-controller.
type Controller struct {
	Address string
	log     string
	cmd     *exec.Cmd
}

// StartController runs the program for a Northbound database. Its files are in dir; one that is started
// again at the same address goes on with its log.
func StartController(program, dir, address, database string) (*Controller, error) {
	name := filepath.Join(dir, "controller-"+strings.ReplaceAll(address, ":", "-"))
	text := fmt.Appendf(nil, "http: {listen: %q}\novn: {nb: %q}\n", address, database)
	if err := os.WriteFile(name+".yaml", text, 0o600); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(name+".log", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the program has its own
	cmd := exec.Command(program, "--config", name+".yaml")
	cmd.Stdout, cmd.Stderr = log, log
	return &Controller{address, log.Name(), cmd}, cmd.Start()
}

// Pid is its process.
func (c *Controller) Pid() int { return c.cmd.Process.Pid }

// Stop ends it.
func (c *Controller) Stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return c.cmd.Wait()
}

// Kill ends it as kill -9 does.
func (c *Controller) Kill() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	_ = c.cmd.Wait() // it was killed
	return nil
}

// Log is what it has written.
func (c *Controller) Log() string {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
