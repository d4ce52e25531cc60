package evpn_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tally is what VMs and switches count of pings, and of packets that are lost
// on their way, by node and name. Two of them tell where a packet of a stream ended: in
// a full queue of the lab's switch, or by Sluice.
type tally map[string]uint64

var (
	packetSocket = regexp.MustCompile(`(?m)^p_\S+\s+\S+\s+\S+\s+\S*?:(\S+).*,d(\d+)\)`)
	coverageDrop = regexp.MustCompile(`(?m)^(\w*drop\w*) .*total: (\d+)`)
	// ofSNMP are the names in /proc/net/snmp and snmp6.
	ofSNMP = regexp.MustCompile(`^(Icmp6?(In|Out)(Msgs|Echo\w*)|Ip6?(InDiscards|OutDiscards|OutNoRoutes|InHdrErrors|InAddrErrors|InNoRoutes))$`)
)

func (w *world) tally() tally {
	out := tally{}
	for _, n := range append(w.chassis(), vms...) {
		show := func(command string) string {
			text, err := w.Exec(background, n, "sh", "-c", command)
			if err != nil {
				w.Logf("%s: %s: %v", n, command, err)
			}
			return text
		}
		out.snmp(n, show("cat /proc/net/snmp /proc/net/snmp6"))
		out.links(n, show("ip -s -j link"))
		if slices.Contains(vms, n) {
			continue
		}
		for _, m := range packetSocket.FindAllStringSubmatch(show("ss -0mn"), -1) {
			out.add(n+": queue of the switch for "+m[1], m[2])
		}
		for _, m := range coverageDrop.FindAllStringSubmatch(show("ovs-appctl coverage/show"), -1) {
			out.add(n+": switch: "+m[1], m[2])
		}
		for _, line := range strings.Split(show(sluicectl()+" drops"), "\n")[1:] {
			if f := strings.Fields(line); len(f) > 1 {
				out.add(n+": sluice: "+f[0], f[1])
			}
		}
	}
	return out
}

func (c tally) add(name, value string) {
	if v, err := strconv.ParseUint(value, 10, 64); err == nil {
		c[name] += v
	}
}

// snmp reads pairs of lines, names and values, of IPv4, and one line a counter of IPv6.
func (c tally) snmp(node, text string) {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		names := strings.Fields(line)
		if len(names) == 2 && ofSNMP.MatchString(names[0]) {
			c.add(node+": "+names[0], names[1])
		}
		if i+1 == len(lines) || len(names) < 2 {
			continue
		}
		values := strings.Fields(lines[i+1])
		if len(values) != len(names) || values[0] != names[0] {
			continue
		}
		for j := 1; j < len(names); j++ {
			if full := strings.TrimSuffix(names[0], ":") + names[j]; ofSNMP.MatchString(full) {
				c.add(node+": "+full, values[j])
			}
		}
	}
}

func (c tally) links(node, text string) {
	var links []struct {
		Ifname string
		Stats  struct {
			Rx, Tx struct{ Dropped, Errors uint64 }
		} `json:"stats64"`
	}
	_ = json.Unmarshal([]byte(text), &links) // nothing is counted then
	for _, l := range links {
		name := node + ": " + l.Ifname
		c[name+" in"] = l.Stats.Rx.Dropped + l.Stats.Rx.Errors
		c[name+" out"] = l.Stats.Tx.Dropped + l.Stats.Tx.Errors
	}
}

// since lists what was counted after before was read.
func (c tally) since(before tally) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if n := c[name] - before[name]; n != 0 && c[name] > before[name] {
			out = append(out, fmt.Sprintf("%s %d", name, n))
		}
	}
	return strings.Join(out, "\n")
}
