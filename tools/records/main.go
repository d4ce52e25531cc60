// Command records makes the testdata of controlplane/openstack from the records of a real Octavia 16 with
// ovn-octavia-provider 8.0.0: what clients asked, what was answered, and the Northbound rows after it.
//
//	records DIRECTORY OUTPUT
//
// DIRECTORY has 1-discovery.jsonl, 2-octavia.jsonl and 6-cli.jsonl, OUTPUT becomes a gzip file of JSON lines.
// Left out are exchanges with other services (but what Neutron answers to anybody, and what commands for load
// balancers ask it), headers that every answer has, and rows and columns that
// neither Octavia's provider nor the API has to do with. What Neutron wrote between two dumps is a line of
// its own where its first call was: {"n": …, "neutron": {table: rows}, "gone": {table: rows}}. An address that
// Neutron chose is <address-N>.
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// line is a record: an exchange, rows, or what Neutron wrote.
type line map[string]any

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: records DIRECTORY OUTPUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "records:", err)
		os.Exit(1)
	}
}

func write(dir, output string) error {
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return err
	}
	for _, name := range []string{"1-discovery.jsonl", "2-octavia.jsonl", "6-cli.jsonl"} {
		lines, err := read(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		for _, s := range sessions(lines) {
			raw, err := trim(s)
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if _, err := zipped.Write(raw); err != nil {
				return err
			}
		}
	}
	if err := zipped.Close(); err != nil {
		return err
	}
	return os.WriteFile(output, out.Bytes(), 0o644)
}

func read(path string) (lines []line, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was read only
	scanner := bufio.NewScanner(f)
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		var asked struct{ Request json.RawMessage }
		if err := json.Unmarshal(scanner.Bytes(), &asked); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if l["request"] != nil {
			l["request"] = asked.Request // errors repeat its keys in their order
		}
		lines = append(lines, l)
	}
	return lines, scanner.Err()
}

func (l line) n() int { n, _ := l["n"].(float64); return int(n) }

func (l line) text(key string) string { s, _ := l[key].(string); return s }

// sessions are lines that were recorded together: those with the same thousands.
func sessions(lines []line) (out [][]line) {
	for _, l := range lines {
		if last := len(out) - 1; last >= 0 && out[last][0].n()/1000 == l.n()/1000 {
			out[last] = append(out[last], l)
		} else {
			out = append(out, []line{l})
		}
	}
	return out
}

// trim is a session as it is kept, as JSON lines.
func trim(session []line) ([]byte, error) {
	neutron := networks(session)
	var kept []line
	for i, l := range session {
		if w := neutron[i]; w != nil {
			kept = append(kept, w)
		}
		switch {
		case l["rows"] != nil:
			kept = append(kept, dump(l))
		case asked(l):
			kept = append(kept, exchange(l))
		}
	}
	var out bytes.Buffer
	encode := json.NewEncoder(&out)
	encode.SetEscapeHTML(false)
	for _, l := range kept {
		if err := encode.Encode(l); err != nil {
			return nil, err
		}
	}
	return addresses(session, out.Bytes()), nil
}

// asked tells whether a line is an exchange that is kept.
func asked(l line) bool {
	switch l.text("service") {
	case "octavia":
		return true
	case "neutron":
		return slices.Contains([]string{"versions-neutron", "extensions", "generic-neutron-network"}, l.text("section")) ||
			strings.HasPrefix(l.text("command"), "openstack loadbalancer")
	}
	return false
}

func keep(l line, keys ...string) line {
	out := line{}
	for _, k := range keys {
		if v, has := l[k]; has && v != nil && v != "" {
			out[k] = v
		}
	}
	return out
}

func exchange(l line) line {
	if accept := l.text("accept"); accept != "" {
		l["request_headers"] = map[string]string{"Accept": accept}
	}
	out := keep(l, "n", "section", "command", "user_agent", "note", "as", "service", "method", "path", "request", "request_raw", "request_headers", "status", "reply", "reply_text", "reply_left_out")
	if headers, is := l["headers"].(map[string]any); is {
		for _, name := range []string{"Allow", "Content-Type"} {
			if v, has := headers[name]; has && v != "application/json" {
				out[name] = v
			}
		}
	}
	return out
}

// ofVIP tells whether a port was made for a VIP.
func ofVIP(row line) bool {
	return strings.HasPrefix(ids(row).text("neutron:port_name"), "ovn-lb-vip-")
}

// ofMonitor tells whether a port was made for a health monitor.
func ofMonitor(row line) bool {
	return strings.HasPrefix(ids(row).text("neutron:port_name"), "ovn-lb-hm-")
}

func ids(row line) line { v, _ := row["external_ids"].(map[string]any); return v }

func tables(of any) map[string][]line {
	out := map[string][]line{}
	all, _ := of.(map[string]any)
	for table, list := range all {
		rows, _ := list.([]any)
		for _, r := range rows {
			switch r := r.(type) {
			case map[string]any:
				out[table] = append(out[table], r)
			case string:
				out[table] = append(out[table], line{"_uuid": r})
			}
		}
	}
	return out
}

// dump has the rows of a line of which the provider writes something.
func dump(l line) line {
	out, rows := keep(l, "n", "section", "note", "full"), map[string]any{}
	for table, list := range tables(l["rows"]) {
		var kept []line
		for _, row := range list {
			switch {
			case table == "Load_Balancer":
				kept = append(kept, row)
			case table == "Logical_Switch" || table == "Logical_Router":
				kept = append(kept, keep(row, "_uuid", "name", "load_balancer"))
			case table == "Logical_Switch_Port" && ofVIP(row):
				port := keep(row, "_uuid", "name", "enabled", "addresses")
				port["external_ids"] = keep(ids(row), "neutron:cidrs", "neutron:network_name", "neutron:port_name", "neutron:project_id")
				kept = append(kept, port)
			}
		}
		if kept != nil {
			rows[table] = kept
		}
	}
	out["rows"] = rows
	if gone, _ := l["gone"].(map[string]any); gone["Load_Balancer"] != nil {
		out["gone"] = map[string]any{"Load_Balancer": gone["Load_Balancer"]}
	}
	return out
}

// columns are those of Neutron's rows that the API reads.
var columns = map[string][]string{
	"Logical_Switch":      {"_uuid", "name", "external_ids", "ports"},
	"Logical_Switch_Port": {"_uuid", "name", "type", "addresses", "options", "external_ids"},
	"Logical_Router":      {"_uuid", "name", "external_ids", "ports", "nat"},
	"Logical_Router_Port": {"_uuid", "name", "mac", "networks", "external_ids"},
	"DHCP_Options":        {"_uuid", "cidr", "external_ids"},
	"NAT":                 {"_uuid", "type", "external_ip", "logical_ip", "logical_port"},
}

// keys are those of external_ids that the API reads of Neutron's rows.
var keys = []string{
	"neutron:cidrs", "neutron:device_owner", "neutron:is_ext_gw", "neutron:network_name", "neutron:port_name", "neutron:project_id",
	"neutron:provnet-network-type", "neutron:router_name", "neutron:subnet_ids", "subnet_id",
}

// networks are lines with what Neutron wrote, by the index of the line that they come before. Rows that no
// call explains were there before the session.
func networks(session []line) map[int]line {
	out, seen := map[int]line{}, map[any]bool{}
	first, done := -1, 0
	for i, l := range session {
		if l.text("service") == "neutron" && l.text("method") != "GET" && first < 0 {
			first = i
		}
		if l["rows"] == nil {
			continue
		}
		at := first
		first = -1
		rows := map[string]any{}
		for table, list := range tables(l["rows"]) {
			var kept []line
			for _, row := range list {
				if columns[table] == nil || ofVIP(row) || ofMonitor(row) || at < 0 && seen[row["_uuid"]] {
					continue
				}
				seen[row["_uuid"]] = true
				next := keep(row, columns[table]...)
				if next["external_ids"] != nil {
					next["external_ids"] = keep(ids(row), keys...)
				}
				kept = append(kept, next)
			}
			if kept != nil {
				rows[table] = kept
			}
		}
		gone := map[string]any{}
		for table, list := range tables(l["gone"]) {
			if columns[table] != nil {
				gone[table] = list
			}
		}
		done = max(at, 0)
		if len(rows) > 0 || at >= 0 && len(gone) > 0 {
			merge(out, done, line{"n": session[done]["n"], "neutron": rows, "gone": gone})
		}
	}
	return out
}

// merge adds a line to one that is there: rows of the session's start come from several dumps.
func merge(out map[int]line, at int, l line) {
	if out[at] == nil {
		out[at] = l
		return
	}
	rows := out[at]["neutron"].(map[string]any)
	for table, list := range l["neutron"].(map[string]any) {
		before, _ := rows[table].([]line)
		rows[table] = append(before, list.([]line)...)
	}
}

// addresses names the addresses of VIPs that the client did not choose.
func addresses(session []line, raw []byte) []byte {
	text := string(raw)
	var named []string
	for _, l := range session {
		reply, _ := l["reply"].(map[string]any)
		made, is := reply["loadbalancer"].(map[string]any)
		if !is || l.text("method") != "POST" || l.n() == 0 {
			continue
		}
		asked, err := json.Marshal(l["request"])
		if err != nil {
			continue
		}
		chosen := []any{made["vip_address"]}
		more, _ := made["additional_vips"].([]any)
		for _, v := range more {
			if vip, is := v.(map[string]any); is {
				chosen = append(chosen, vip["ip_address"])
			}
		}
		for _, a := range chosen {
			if address, _ := a.(string); address != "" && !strings.Contains(string(asked), `"`+address+`"`) && !slices.Contains(named, address) {
				named = append(named, address)
			}
		}
	}
	for i, address := range named {
		text = replaceWord(text, address, fmt.Sprintf("<address-%d>", i+1))
	}
	return []byte(text)
}

// replaceWord replaces an address where no longer one is meant.
func replaceWord(text, word, by string) string {
	var out strings.Builder
	for {
		i := strings.Index(text, word)
		if i < 0 {
			out.WriteString(text)
			return out.String()
		}
		end := i + len(word)
		part := i > 0 && strings.ContainsRune("0123456789.", rune(text[i-1])) || end < len(text) && strings.ContainsRune("0123456789", rune(text[end]))
		out.WriteString(text[:i])
		if part {
			out.WriteString(word)
		} else {
			out.WriteString(by)
		}
		text = text[end:]
	}
}
