package lab

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Command is a command in a node's namespace and environment. It is not started.
func (l *Lab) Command(ctx context.Context, node string, argv ...string) (*exec.Cmd, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	return l.command(ctx, n, argv...), nil
}

func (l *Lab) command(ctx context.Context, n Node, argv ...string) *exec.Cmd {
	argv = append(l.enter(n), argv...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = l.env(n)
	cmd.WaitDelay = Patience() / 6
	return cmd
}

// Exec runs a command in a node and returns its standard output. The error
// holds the command and what it wrote.
func (l *Lab) Exec(ctx context.Context, node string, argv ...string) (string, error) {
	cmd, err := l.Command(ctx, node, argv...)
	if err != nil {
		return "", err
	}
	what := "on " + node + ": " + strings.Join(argv, " ")
	defer l.Slow(head(what, 100))()
	return run(cmd, what)
}

// NB runs ovn-nbctl in a cloud.
func (l *Lab) NB(ctx context.Context, cloud string, args ...string) (string, error) {
	return l.Exec(ctx, Cloud{Name: cloud}.central(), append([]string{"ovn-nbctl"}, args...)...)
}

// SB runs ovn-sbctl in a cloud.
func (l *Lab) SB(ctx context.Context, cloud string, args ...string) (string, error) {
	return l.Exec(ctx, Cloud{Name: cloud}.central(), append([]string{"ovn-sbctl"}, args...)...)
}

func run(cmd *exec.Cmd, what string) (string, error) {
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s: %w: %s", head(what, 300), err, strings.TrimSpace(errs.String()+" "+tail(out.String(), 500)))
	}
	return out.String(), nil
}

func head(s string, n int) string {
	if len(s) > n {
		return s[:n] + "…"
	}
	return s
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// ipBatch runs `ip -batch` in a namespace, "" for the host's.
func ipBatch(ctx context.Context, netns, batch string) error {
	args := []string{"-batch", "-"}
	if netns != "" {
		args = append([]string{"-n", netns}, args...)
	}
	cmd := exec.CommandContext(ctx, "ip", args...)
	cmd.Stdin = strings.NewReader(batch)
	_, err := run(cmd, "ip "+strings.Join(args, " "))
	return err
}
