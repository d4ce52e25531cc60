package ovs

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// openFlow is the version for flows: the first with bundles.
const openFlow = "OpenFlow14"

func (s *Switch) socket(bridge string) string {
	return filepath.Join(s.config.RunDir, bridge+".mgmt")
}

// ofctl runs ovs-ofctl with the bridge as its target: args, target, more.
func (s *Switch) ofctl(ctx context.Context, input, bridge string, args []string, more ...string) ([]byte, error) {
	within, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	args = append(append(args, "unix:"+s.socket(bridge)), more...)
	cmd := s.command(within, args...)
	cmd.Stdin = strings.NewReader(input)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(stderr.String())
		if strings.Contains(text, "version negotiation failed") {
			text += " (Bridge.protocols of " + bridge + " has to include OpenFlow10 and " + openFlow + ")"
		}
		if within.Err() != nil && ctx.Err() == nil {
			s.late.Add(1)
		}
		return nil, fmt.Errorf("ovs-ofctl on bridge %s: %w: %s", bridge, errors.Join(err, within.Err()), text)
	}
	s.late.Store(0)
	return out.Bytes(), nil
}

// mostPatience bounds the growth of patience.
const mostPatience = 4

// patience is how long ovs-ofctl may take: twice as long each time that it was not done.
// On a machine that has no processor to spare it would never be, and its work begins
// anew each time.
func (s *Switch) patience() time.Duration {
	return s.config.Timeout << min(s.late.Load(), mostPatience-1)
}

// command is ovs-ofctl without a control socket: "monitor" would make one in the
// run directory, which may be read-only, and leave it there when killed.
func (s *Switch) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "ovs-ofctl", append([]string{"--unixctl=none"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Second
	return cmd
}

// dumped is what a bridge has under a cookie. Lines that parseFlow does not
// read are in unknown, as matches without cookie.
type dumped struct {
	flows   []flow
	unknown []string
	// foreign are the matches under other cookies that are ones of Sluice's shapes.
	foreign map[match]uint64
}

// dump reads the flows of a cookie alone.
func (s *Switch) dump(ctx context.Context, bridge string, cookie uint64) (dumped, error) {
	return s.dumpOf(ctx, bridge, cookie, fmt.Sprintf("cookie=%#x/-1", cookie))
}

// dumpAll reads foreign flows too: "add" takes the place of a flow with the same
// match and priority, whatever its cookie is (OpenFlow 1.4, section 6.4).
func (s *Switch) dumpAll(ctx context.Context, bridge string, cookie uint64) (dumped, error) {
	return s.dumpOf(ctx, bridge, cookie, "table=0")
}

func (s *Switch) dumpOf(ctx context.Context, bridge string, cookie uint64, which string) (dumped, error) {
	out, err := s.ofctl(ctx, "", bridge, []string{"-O", openFlow, "--no-stats", "--no-names", "dump-flows"}, which)
	if err != nil {
		return dumped{}, err
	}
	return parseDump(out, cookie), nil
}

func parseDump(out []byte, cookie uint64) dumped {
	d := dumped{foreign: make(map[match]uint64)}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		text, _, ok := cutActions(line)
		if !ok {
			continue
		}
		if c := cookieOf(text); c != cookie {
			if m, err := parseMatch(text); err == nil {
				d.foreign[m] = c
			}
			continue
		}
		if f, err := parseFlow(line); err == nil {
			d.flows = append(d.flows, f)
			continue
		}
		_, text, _ = strings.Cut(text, ",")
		d.unknown = append(d.unknown, strings.TrimSpace(text))
	}
	return d
}

// cookieOf reads the cookie of a line of ovs-ofctl, which does not show a zero.
func cookieOf(line string) uint64 {
	_, rest, _ := strings.Cut(line, "cookie=")
	if i := strings.IndexAny(rest, ", "); i >= 0 {
		rest = rest[:i]
	}
	cookie, _ := strconv.ParseUint(rest, 0, 64)
	return cookie
}

// collision is an error if a foreign flow has the place of one of the flows.
func (d dumped) collision(want []flow) error {
	for _, f := range want {
		if cookie, taken := d.foreign[f.match]; taken {
			return fmt.Errorf("the flow %q with cookie %#x is in the way: %w", f.match.format(), cookie, reconcile.ErrForeign)
		}
	}
	return nil
}

// bundle applies lines of "add …" and "delete_strict …" as one.
func (s *Switch) bundle(ctx context.Context, bridge string, lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	s.sends(bridge, lines)
	_, err := s.ofctl(ctx, strings.Join(lines, "\n")+"\n", bridge, []string{"-O", openFlow, "--bundle", "add-flows"}, "-")
	if err != nil {
		s.forgetLeaving(bridge)
	}
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
