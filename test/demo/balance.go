package demo

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// The load balancer of the demo.
const (
	vip4, vip6  = "10.99.0.1", "[fd00:99::1]"
	connections = 1000
	streams     = 50
)

// balance has a load balancer of OVN served in eBPF, and takes a backend away.
func (t *tour) balance(ctx context.Context) error {
	t.head("A load balancer of OVN, served where packets enter the cloud")
	t.say("be1 to be%d are web servers of red in cloud A. An ordinary load balancer of red's router, with health checks:", lab.Backends)
	if err := t.addBalancer(ctx); err != nil {
		return err
	}
	t.say("a1 announces both VIPs, and its eBPF chooses the backend of each connection that comes by the fabric:")
	for _, vip := range []string{vip4, vip6} {
		counts, err := t.connect(ctx, "c-fabric", vip, connections)
		if err != nil {
			return err
		}
		t.say("%d connections of c-fabric in cloud B to %s: %s", connections, vip, tally(counts))
		if len(counts) != lab.Backends {
			return fmt.Errorf("%d of %d backends were asked", len(counts), lab.Backends)
		}
	}
	if _, err := t.show(ctx, "a1", "sluicectl", "lb", "show", "web"); err != nil {
		return err
	}
	if err := t.balanceVMs(ctx); err != nil {
		return err
	}
	return t.loseBackend(ctx)
}

// balanceVMs has the load balancer serve VMs of the cloud, too.
func (t *tour) balanceVMs(ctx context.Context) error {
	t.say("The same for VMs of red's networks: their taps' eBPF chooses, on any node, before Open vSwitch sees a packet.")
	for _, network := range []string{"net", "other"} {
		line := "ls-lb-add " + lab.SwitchName("red", network) + " web"
		fmt.Fprintf(t.out, "a$ ovn-nbctl %s\n", line)
		if _, err := t.lab.NB(ctx, "a", strings.Fields(line)...); err != nil {
			return err
		}
	}
	for _, m := range []struct{ name, node string }{{"c-same", "a2"}, {"c-net", "a3"}} {
		if err := t.lab.WaitFor(ctx, m.name+" is balanced on its tap", func() error {
			out, err := t.lab.Exec(ctx, m.node, "sluicectl", "lb", "vms")
			if err == nil && !regexp.MustCompile(m.name+` .* ok +ebpf`).MatchString(out) {
				err = errors.New(out)
			}
			return err
		}); err != nil {
			return err
		}
		counts, err := t.connect(ctx, m.name, vip4, connections)
		if err != nil {
			return err
		}
		t.say("%d connections of %s on %s to %s: %s", connections, m.name, m.node, vip4, tally(counts))
		if len(counts) != lab.Backends {
			return fmt.Errorf("%d of %d backends were asked", len(counts), lab.Backends)
		}
	}
	_, err := t.show(ctx, "a3", "sluicectl", "lb", "vms")
	return err
}

// quoted is arguments as a shell takes them.
func quoted(args []string) string {
	out := make([]string, len(args))
	for i, a := range args {
		if out[i] = a; strings.ContainsAny(a, `"[]`) {
			out[i] = "'" + a + "'"
		}
	}
	return strings.Join(out, " ")
}

// addBalancer makes the load balancer, and waits until all backends are probed.
func (t *tour) addBalancer(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	for i := 1; i <= lab.Backends; i++ {
		if _, err := t.lab.StartBackend(ctx, fmt.Sprintf("be%d", i), exe); err != nil {
			return err
		}
	}
	lines := []string{"", ""}
	checks, mappings := []string{}, []string{}
	for i, f := range []struct{ vip, backend, source string }{{vip4, "10.10.0.%d", "10.10.0.254"}, {vip6, "[fd00:10::%d]", "[fd00:10::fe]"}} {
		at := fmt.Sprintf("%s:80", f.vip)
		var backends []string
		for n := 1; n <= lab.Backends; n++ {
			address := fmt.Sprintf(f.backend, 20+n)
			backends = append(backends, fmt.Sprintf("%s:%d", address, backend.HTTPPort))
			mappings = append(mappings, "--", "set", "Load_Balancer", "web", fmt.Sprintf("ip_port_mappings:%q=%q", address, fmt.Sprintf("be%d:%s", n, f.source)))
		}
		lines[i] = fmt.Sprintf("lb-add web %s %s tcp", at, strings.Join(backends, ","))
		checks = append(checks, "--", fmt.Sprintf("--id=@check%d", i), "create", "Load_Balancer_Health_Check", fmt.Sprintf("vip=%q", at),
			"options:interval=1", "options:timeout=1", "options:success_count=1", "options:failure_count=1", "--", "add", "Load_Balancer", "web", "health_check", fmt.Sprintf("@check%d", i))
	}
	for _, line := range append(lines, "lr-lb-add red-router web") {
		fmt.Fprintf(t.out, "a$ ovn-nbctl %s\n", line)
		if _, err := t.lab.NB(ctx, "a", strings.Fields(line)...); err != nil {
			return err
		}
	}
	for _, args := range [][]string{checks[1:], mappings[1:]} {
		fmt.Fprintf(t.out, "a$ ovn-nbctl %s\n", quoted(args))
		if _, err := t.lab.NB(ctx, "a", args...); err != nil {
			return err
		}
	}
	if err := t.lab.WaitFor(ctx, "all backends are probed", func() error {
		out, err := t.lab.SB(ctx, "a", "--format=csv", "--no-headings", "--columns=status", "list", "Service_Monitor")
		if err == nil && strings.Count(out, "online") != 2*lab.Backends {
			err = fmt.Errorf("%q", out)
		}
		return err
	}); err != nil {
		return err
	}
	for _, vip := range []string{vip4, vip6} {
		if err := t.lab.WaitFor(ctx, vip+" answers", func() error {
			_, err := t.connect(ctx, "c-fabric", vip, 1)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// connect makes new connections, one after the other, and counts who answers.
func (t *tour) connect(ctx context.Context, client, vip string, n int) (map[string]int, error) {
	curl, port := []string{"curl", "--fail-early"}, lab.NewPorts(n)
	for i := range n {
		curl = append(curl, "-gsSf", "--max-time", "20", "-H", "Connection: close", "--local-port", strconv.Itoa(port+i), "http://"+vip+"/", "--next")
	}
	out, err := t.lab.Exec(ctx, client, curl[:len(curl)-1]...)
	if err != nil {
		return nil, err
	}
	counts := map[string]int{}
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, " ")
		counts[name]++
	}
	if got := strings.Count(out, "\n"); got != n {
		return nil, fmt.Errorf("%d of %d connections were answered", got, n)
	}
	return counts, nil
}

func tally(counts map[string]int) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(out, ", ")
}

// loseBackend kills a backend under connections that are open.
func (t *tour) loseBackend(ctx context.Context) error {
	t.head("kill -9 of a backend under %d connections", streams)
	open, err := t.openStreams(ctx)
	defer open.close()
	if err != nil {
		return err
	}
	before, err := open.more(ctx, "the connections are open", "")
	if err != nil {
		return err
	}
	if _, err := t.end("be1", "backend"); err != nil {
		return err
	}
	if err := t.lab.WaitFor(ctx, "OVN finds be1 dead", func() error {
		counts, err := t.connect(ctx, "c-fabric", vip4, 20)
		if counts["be1"] > 0 {
			err = fmt.Errorf("be1 still answers")
		}
		return err
	}); err != nil {
		return err
	}
	after, err := open.more(ctx, "the connections to live backends go on", "be1")
	if err != nil {
		return err
	}
	counts, err := t.connect(ctx, "c-fabric", vip4, connections)
	if err != nil {
		return err
	}
	t.say("Open before: %s. Open after: %s.", tally(before), tally(after))
	t.say("Once OVN's health check had found be1 dead, %d of %d new connections were answered: %s.", connections, connections, tally(counts))
	delete(before, "be1")
	if counts["be1"] > 0 || !maps.Equal(before, after) {
		return fmt.Errorf("connections after be1 was killed: %v, open ones %v, and without those to be1 before %v", counts, after, before)
	}
	return nil
}

// openStreams are connections over which a backend sends its name again and again.
type openStreams struct {
	lab *lab.Lab
	dir string // a file for each
	all []*exec.Cmd
}

func (t *tour) openStreams(ctx context.Context) (*openStreams, error) {
	dir, err := os.MkdirTemp(t.lab.Dir(), "streams-")
	o := &openStreams{lab: t.lab, dir: dir}
	for i := 0; i < streams && err == nil; i++ {
		var c *exec.Cmd
		if c, err = t.lab.Command(ctx, "c-fabric", "curl", "-sSN", "--local-port", strconv.Itoa(lab.NewPorts(1)), "-o", o.file(i), "http://"+vip4+"/stream"); err == nil {
			err = c.Start()
		}
		if err == nil {
			o.all = append(o.all, c)
		}
	}
	return o, err
}

func (o *openStreams) file(i int) string { return filepath.Join(o.dir, fmt.Sprint(i)) }

// close ends them.
func (o *openStreams) close() {
	for _, c := range o.all {
		_ = c.Process.Kill()
		_ = c.Wait()
	}
	_ = os.RemoveAll(o.dir)
}

// lines is what came over one.
func (o *openStreams) lines(i int) []string {
	b, _ := os.ReadFile(o.file(i)) // not there yet: none
	return strings.Fields(string(b))
}

// more waits until each has had two lines more, but those to a dead backend, and counts
// whom they are to.
func (o *openStreams) more(ctx context.Context, what, dead string) (map[string]int, error) {
	of := map[string]int{}
	for i := range o.all {
		before := o.lines(i)
		if len(before) > 0 && before[0] == dead {
			continue
		}
		if err := o.lab.WaitFor(ctx, what, func() error {
			if len(o.lines(i)) <= len(before)+1 {
				return fmt.Errorf("connection %d, to %v, has no more lines", i, before[:min(1, len(before))])
			}
			return nil
		}); err != nil {
			return nil, err
		}
		had := o.lines(i)
		had = slices.Compact(had[:len(had)-1]) // the last one may not be whole
		if len(had) != 1 {
			return nil, fmt.Errorf("connection %d was answered by several: %v", i, had)
		}
		of[had[0]]++
	}
	return of, nil
}
