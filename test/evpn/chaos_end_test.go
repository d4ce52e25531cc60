package evpn_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/pins"
)

// usage is what a sluiced uses.
type usage struct{ files, goroutines, threads int }

// grown is by how much a sluiced may have grown: a question that is answered just
// then, a connection that is not closed yet.
const grown = 12

// sizes are those of all nodes.
func (c *chaos) usage() map[string]usage {
	c.Helper()
	out := map[string]usage{}
	for _, n := range c.chassis() {
		dir := fmt.Sprintf("/proc/%d/", c.process(n, "sluiced").Pid())
		var s usage
		for _, part := range []struct {
			dir string
			to  *int
		}{{"fd", &s.files}, {"task", &s.threads}} {
			entries, err := os.ReadDir(dir + part.dir)
			if err != nil {
				c.Fatal(err)
			}
			*part.to = len(entries)
		}
		text := c.exec(n, "sh", "-ec", "curl -sS http://127.0.0.1:9476/metrics | grep '^go_goroutines '")
		if _, err := fmt.Sscanf(text, "go_goroutines %d", &s.goroutines); err != nil {
			c.Fatalf("%s: %v", text, err)
		}
		out[n] = s
	}
	return out
}

// compareUsage demands that a process has not grown.
func (c *chaos) compareUsage(what string, small, large usage) {
	c.Helper()
	c.Logf("%s: %+v, and %+v", what, small, large)
	if large.files > small.files+grown || large.goroutines > small.goroutines+grown {
		c.Errorf("%s: it has grown from %+v to %+v", what, small, large)
	}
}

// summary says what happened.
func (c *chaos) summary() {
	c.Helper()
	packets, lost := 0, 0
	for _, p := range c.traffic.pairs {
		l := p.lost(c.begin, time.Now().Add(-answerTime))
		packets, lost = packets+l.sent, lost+l.lost
	}
	c.Logf("%d rounds, %d packets of %d pairs, %d lost:%s\n%v\n%v",
		len(c.history), packets, len(c.traffic.pairs), lost, strings.Join(c.history, ""), c.costs, c.masked)
	for _, problem := range c.masked.exceeded(chaosBounds(len(c.history))) {
		c.Error(problem)
	}
}

// sameAsAfterCleanStart compares all that is there with what is there when sluiced was
// stopped, everything of Sluice was removed, and it was started again.
func (c *chaos) sameAsAfterCleanStart(before map[string]usage) {
	c.Helper()
	sizes := c.usage()
	c.compareUsage("sluiced on "+steady+" before and after all events", before[steady], sizes[steady])
	// A clean start knows no tunnel endpoint that has lost its last route, as by a move in the
	// last round; a running sluiced does for a while.
	time.Sleep(lab.VTEPLinger + time.Second)
	// Nor does it warn of packets that devices have dropped before; a running sluiced does for a minute.
	for _, n := range c.chassis() {
		c.calm("no device drops packets on "+n, func() error {
			s, err := c.status(n)
			if err == nil && slices.ContainsFunc(s.Problems, func(o status.Object) bool { return o.Reason == reason.DeviceDrops }) {
				err = fmt.Errorf("problems: %+v", s.Problems)
			}
			return err
		})
	}
	was := c.snapshot()
	for _, n := range c.chassis() {
		if err := c.process(n, "sluiced").Stop(); err != nil {
			c.Fatal(err)
		}
		c.exec(n, sluicectl(), "cleanup", "--config", c.node(n).Dir+"/sluiced.yaml")
	}
	c.nothingLeft("none")
	for _, n := range c.chassis() {
		c.startAgain(n, "sluiced")
	}
	begin := time.Now()
	c.settle(begin)
	var differences string
	err := c.WaitFor(c.Context(), "a clean start to end as the events did", func() error {
		differences = compare(was, c.snapshot())
		if differences != "" {
			return fmt.Errorf("- after the events, + after a clean start:%s", differences)
		}
		return nil
	})
	if err != nil {
		c.Error(err)
	}
	for n, s := range c.usage() {
		c.compareUsage("sluiced on "+n+" after a clean start, and before it", s, sizes[n])
	}
}

// compare lists the lines that only one of two moments has.
func compare(was, is map[string]string) string {
	var b strings.Builder
	for _, what := range slices.Sorted(maps.Keys(was)) {
		before, after := strings.Split(was[what], "\n"), strings.Split(is[what], "\n")
		gone, come := missing(before, after), missing(after, before)
		if len(gone)+len(come) > 0 {
			fmt.Fprintf(&b, "\n  %s:%s%s", what, lines("\n    - ", gone), lines("\n    + ", come))
		}
	}
	return b.String()
}

// missing are the lines that others have fewer of.
func missing(lines, others []string) (out []string) {
	count := map[string]int{}
	for _, line := range others {
		count[line]++
	}
	for _, line := range lines {
		if count[line]--; count[line] < 0 {
			out = append(out, line)
		}
	}
	return out
}

func lines(before string, list []string) string {
	if len(list) == 0 {
		return ""
	}
	return before + strings.Join(list, before)
}

// noGateway is the node that has no gateway ports.
const noGateway = "a3"

// snapshot is everything of Sluice's, in words that do not change with the order of
// events: no numbers of devices, no slots of arrays, no times, no counters.
func (c *chaos) snapshot() map[string]string {
	c.Helper()
	out := map[string]string{"routes at the reflector": c.json("rr", "vtysh", "-c", "show bgp l2vpn evpn route type prefix json")}
	for _, cloud := range chaosClouds {
		text, err := c.SB(c.Context(), cloud, "--format=csv", "--no-headings", "--columns=name,external_ids", "list", "Chassis_Private")
		if err != nil {
			c.Fatal(err)
		}
		out["Chassis_Private of cloud "+cloud] = sorted(text)
	}
	for _, n := range c.chassis() {
		for what, text := range map[string]string{
			"pins":      c.pinned(n),
			"devices":   c.devices(n),
			"addresses": sorted(index.ReplaceAllString(c.exec(n, "ip", "-o", "addr"), "")),
			"routes":    sorted(c.exec(n, "sh", "-ec", "ip route show table all; ip -6 route show table all; ip rule; ip -6 rule")),
			"flows":     c.flows(n),
			"switch":    sorted(c.exec(n, "ovs-vsctl", "--format=csv", "--no-headings", "--columns=name,type,external_ids", "list", "Interface")),
			"processes": c.processes(n),
			"status":    c.json(n, sluicectl(), "status", "-o", "json"),
		} {
			out[what+" of "+n] = text
		}
		if n == noGateway { // it forwards nothing, and answers nothing else
			continue
		}
		out["vrfs of "+n] = c.vrfs(n)
		for what, argv := range map[string]string{
			"routes of VRFs": "route list", "bgp routes": "bgp routes", "neighbors": "bgp neighbors", "differences": "diff",
		} {
			out[what+" of "+n] = c.json(n, append([]string{sluicectl(), "-o", "json"}, strings.Fields(argv)...)...)
		}
	}
	return out
}

func sorted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

var (
	// index is the number of a device at the beginning of a line.
	index = regexp.MustCompile(`(?m)^\d+: `)
	// passing are parts of a device's line that say nothing of Sluice.
	passing = regexp.MustCompile(`@if\d+|link-netnsid \d+ |qlen \d+`)
	// linkPin ends with the number of a device.
	linkPin = regexp.MustCompile(`^(link_\w+_)(\d+) `)
)

// devices are all links of a node, Sluice's with all that there is to know.
func (c *chaos) devices(node string) string {
	c.Helper()
	var lines []string
	for line := range strings.Lines(c.exec(node, "ip", "-d", "-o", "link")) {
		line = passing.ReplaceAllString(index.ReplaceAllString(strings.TrimSpace(line), ""), "")
		if !strings.Contains(line, "sluice") {
			line, _, _ = strings.Cut(line, "\\")
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	return sorted(strings.Join(lines, "\n"))
}

// callPin is the pin of what overlay_in calls. Its number is that of a load of the programs.
var callPin = regexp.MustCompile(`^(page_overlay_in_)\d+`)

// pinned are the names of all pins, with the number of rows of the maps that no
// packet changes.
func (c *chaos) pinned(node string) string {
	c.Helper()
	names := map[string]string{}
	for line := range strings.Lines(c.exec(node, "ip", "-o", "link")) {
		number, rest, _ := strings.Cut(line, ": ")
		name, _, _ := strings.Cut(rest, ":")
		names[number], _, _ = strings.Cut(name, "@")
	}
	text, err := pins.Dump(c.node(node).BPFFS)
	if err != nil {
		c.Fatal(err)
	}
	rows, order := map[string]int{}, []string{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, " ") {
			rows[order[len(order)-1]]++
			continue
		}
		name, _, _ := strings.Cut(line, " ")
		if m := linkPin.FindStringSubmatch(line); m != nil {
			name = m[1] + names[m[2]]
		}
		name = callPin.ReplaceAllString(name, "${1}N")
		order = append(order, name)
	}
	for i, name := range order {
		if !strings.HasPrefix(name, "gate_front_") { // its rows are never cleared
			order[i] = fmt.Sprintf("%s: %d rows", name, rows[name])
		}
	}
	return sorted(strings.Join(order, "\n"))
}

// vrfs are all VRFs of a node with their gateways.
func (c *chaos) vrfs(node string) string {
	c.Helper()
	var list []struct{ VNI int }
	if err := json.Unmarshal([]byte(c.exec(node, sluicectl(), "vrf", "list", "-o", "json")), &list); err != nil {
		c.Fatal(err)
	}
	var out []string
	for _, v := range list {
		out = append(out, c.json(node, sluicectl(), "vrf", "show", strconv.Itoa(v.VNI), "-o", "json"))
	}
	return strings.Join(out, "\n")
}

// processes are those with a node's network.
func (c *chaos) processes(node string) string {
	c.Helper()
	own, err := os.Stat("/run/netns/" + c.node(node).Netns)
	if err != nil {
		c.Fatal(err)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		c.Fatal(err)
	}
	var names []string
	for _, dir := range dirs {
		if ns, err := os.Stat(dir + "/ns/net"); err != nil || !os.SameFile(ns, own) {
			continue
		}
		if name, err := os.ReadFile(dir + "/comm"); err == nil {
			names = append(names, strings.TrimSpace(string(name)))
		}
	}
	return sorted(strings.Join(names, "\n"))
}

// changing are the parts of answers that are other each time. The preference of a
// route rises with each move of its gateway port.
var changing = []string{
	"locPrf",
	"since", "started", "retry", "lastError", "flaps", "messagesIn", "messagesOut", "packets", "bytes", "toFabric", "fromFabric",
	"version", "tableVersion", "pathId", "lastUpdate",
}

// json is an answer of a command without what changes, with lists in a fixed order.
func (c *chaos) json(node string, argv ...string) string {
	c.Helper()
	out, err := c.Exec(c.Context(), node, argv...)
	var v any
	if e := json.Unmarshal([]byte(out), &v); e != nil {
		c.Fatalf("%v: %v: %v: %s", argv, err, e, out)
	}
	text, err := json.MarshalIndent(lasting(v), "", " ")
	if err != nil {
		c.Fatal(err)
	}
	return string(text)
}

func lasting(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if slices.Contains(changing, k) {
				delete(v, k)
				continue
			}
			v[k] = lasting(e)
		}
	case []any:
		text := func(a any) string { b, _ := json.Marshal(a); return string(b) }
		for i, e := range v {
			v[i] = lasting(e)
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	return v
}
