package ovs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// openFlow is the version for flows: the first with bundles.
const openFlow = "OpenFlow14"

func (s *Switch) socket(bridge string) string {
	return filepath.Join(s.config.RunDir, bridge+".mgmt")
}

// ofctl runs ovs-ofctl with the bridge as its target: args, target, more.
func (s *Switch) ofctl(ctx context.Context, input, bridge string, args []string, more ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	args = append(append(args, "unix:"+s.socket(bridge)), more...)
	cmd := s.command(ctx, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		if strings.Contains(text, "version negotiation failed") {
			text += " (Bridge.protocols of " + bridge + " has to include OpenFlow10 and " + openFlow + ")"
		}
		return nil, fmt.Errorf("ovs-ofctl on bridge %s: %w: %s", bridge, errors.Join(err, ctx.Err()), text)
	}
	return out.Bytes(), nil
}

// command is ovs-ofctl with the run directory as its own: it makes a control
// socket there, which it removes when asked to end, but not when killed.
func (s *Switch) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ovs-ofctl", args...)
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+s.config.RunDir)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	return cmd
}

// dumped is what a bridge has under a cookie. Lines that parseFlow does not
// read are in unknown, as matches without cookie.
type dumped struct {
	flows   []flow
	unknown []string
}

func (s *Switch) dump(ctx context.Context, bridge string, cookie uint64) (dumped, error) {
	out, err := s.ofctl(ctx, "", bridge, []string{"-O", openFlow, "--no-stats", "--no-names", "dump-flows"},
		fmt.Sprintf("cookie=%#x/-1", cookie))
	if err != nil {
		return dumped{}, err
	}
	return parseDump(out), nil
}

func parseDump(out []byte) dumped {
	var d dumped
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(line, "cookie=") {
			continue
		}
		f, err := parseFlow(line)
		if err == nil {
			d.flows = append(d.flows, f)
			continue
		}
		text, _, _ := cutActions(line)
		_, text, _ = strings.Cut(text, ",")
		d.unknown = append(d.unknown, strings.TrimSpace(text))
	}
	return d
}

// bundle applies lines of "add …" and "delete_strict …" as one.
func (s *Switch) bundle(ctx context.Context, bridge string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := s.ofctl(ctx, strings.Join(lines, "\n")+"\n", bridge, []string{"-O", openFlow, "--bundle", "add-flows"}, "-")
	return err
}

func addLine(cookie uint64, f flow) string {
	return fmt.Sprintf("add cookie=%#x,%s", cookie, f.format())
}

// deleteLine removes the flow only if it has the cookie: a foreign flow with the
// same match stays.
func deleteLine(cookie uint64, match string) string {
	return fmt.Sprintf("delete_strict cookie=%#x/-1,%s", cookie, match)
}

// portLine is " 2(sluice0-ovs): addr:…"; configLine is "     config:     NO_FLOOD".
var (
	portLine   = regexp.MustCompile(`^ (\d+|[A-Z]+)\((.*)\): addr:`)
	configLine = regexp.MustCompile(`^ +config: +(.*)$`)
)

// noFlood tells whether the port with the number has the name and is no-flood.
func (s *Switch) noFlood(ctx context.Context, bridge string, p Port) (named, noFlood bool, err error) {
	out, err := s.ofctl(ctx, "", bridge, []string{"-O", "OpenFlow10", "show"})
	if err != nil {
		return false, false, err
	}
	named, noFlood = parseShow(out, p)
	return named, noFlood, nil
}

func parseShow(out []byte, p Port) (named, noFlood bool) {
	here := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimRight(line, "\n")
		if m := portLine.FindStringSubmatch(line); m != nil {
			here = m[1] == strconv.Itoa(p.Number) && m[2] == p.Name
			named = named || here
		} else if m := configLine.FindStringSubmatch(line); m != nil && here {
			noFlood = strings.Contains(m[1], "NO_FLOOD")
		}
	}
	return named, noFlood
}

func (s *Switch) setNoFlood(ctx context.Context, bridge string, p Port) error {
	_, err := s.ofctl(ctx, "", bridge, []string{"-O", "OpenFlow10", "mod-port"}, strconv.Itoa(p.Number), "no-flood")
	return err
}
