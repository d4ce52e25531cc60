package openstack

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// bindings has what a record's placeholders stand for, without their brackets.
type bindings map[string]string

var placeholder = regexp.MustCompile(`<[a-z][a-z0-9-]*>`)

// ofNeutron is how Neutron names the switch of a network and a router. In a switch with such a name nobody
// but Neutron allocates addresses: here networks have the placeholder as their name.
var ofNeutron = regexp.MustCompile(`neutron-<([a-z][a-z0-9-]*)>`)

// moment is a time as Octavia writes it.
const moment = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"

// fill replaces the placeholders of a text. Those that stand for nothing yet are returned, too.
func (b bindings) fill(text string) (out string, unbound []string) {
	text = ofNeutron.ReplaceAllString(text, "$1")
	out = placeholder.ReplaceAllStringFunc(text, func(name string) string {
		if v, ok := b[strings.Trim(name, "<>")]; ok {
			return v
		}
		unbound = append(unbound, name)
		return name
	})
	return out, unbound
}

// match compares a text with a record's, and binds the placeholders that stand for nothing yet.
func (b bindings) match(record, text string) bool {
	record, unbound := b.fill(record)
	if len(unbound) == 0 {
		return record == text
	}
	var pattern strings.Builder
	var names []string
	rest := 0
	for _, at := range placeholder.FindAllStringIndex(record, -1) {
		pattern.WriteString(regexp.QuoteMeta(record[rest:at[0]]))
		if name := record[at[0]+1 : at[1]-1]; name == "time" {
			pattern.WriteString(moment)
		} else {
			pattern.WriteString("([0-9a-zA-Z.:-]+)")
			names = append(names, name)
		}
		rest = at[1]
	}
	pattern.WriteString(regexp.QuoteMeta(record[rest:]))
	found := regexp.MustCompile("^(?:" + pattern.String() + ")$").FindStringSubmatch(text)
	if found == nil {
		return false
	}
	fresh := bindings{}
	for i, name := range names {
		v := found[i+1]
		if before, twice := fresh[name]; twice && before != v || b.other(name, v) {
			return false
		}
		fresh[name] = v
	}
	maps.Copy(b, fresh)
	return true
}

// other tells whether a value is another object's. Two projects of the records may be one here.
func (b bindings) other(name, value string) bool {
	return !strings.HasPrefix(name, "project-") && slices.Contains(slices.Collect(maps.Values(b)), value)
}

// everywhere are differences that are none of a single exchange; the table has why.
type everywhere struct {
	// pending: an object that the record shows as pending is active here, with the operating status that follows.
	pending int
	// updated: the record's time of the last change is one of Octavia's own, when the provider was done.
	updated int
	// deleted: an object that the record shows while it is deleted is gone here.
	deleted int
}

// comparison collects the places where an answer differs from the record.
type comparison struct {
	bindings
	seen   *everywhere
	places []string
}

var (
	anyID  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	ofVIPs = regexp.MustCompile(`\.vips\..*`)
)

// differs notes a place, with * for an ID in it. All addresses of a row are one place.
func (c *comparison) differs(place string) {
	if place == "" {
		place = "answer"
	}
	place = ofVIPs.ReplaceAllString(anyID.ReplaceAllString(strings.TrimPrefix(place, "."), "*"), ".vips")
	if !slices.Contains(c.places, place) {
		c.places = append(c.places, place)
	}
}

// value compares what was decoded from JSON. Lists are compared as sets, but for that of a collection.
func (c *comparison) value(place string, record, got any) {
	switch record := record.(type) {
	case string:
		if text, is := got.(string); !is || !c.match(record, text) {
			c.differs(place)
		}
	case map[string]any:
		if object, is := got.(map[string]any); is {
			c.object(place, record, object)
		} else {
			c.differs(place)
		}
	case []any:
		if list, is := got.([]any); is && len(list) == len(record) {
			c.list(place, record, list)
		} else {
			c.differs(place)
		}
	default:
		if record != got {
			c.differs(place)
		}
	}
}

func (c *comparison) object(place string, record, got map[string]any) {
	state, _ := record["provisioning_status"].(string)
	pending := strings.HasPrefix(state, "PENDING_") && got["provisioning_status"] == "ACTIVE"
	if pending {
		c.seen.pending++
	}
	wanted := map[string]any{}
	for key, v := range record {
		filled, _ := c.fill(key)
		wanted[filled] = v
	}
	record = wanted
	for _, key := range slices.Sorted(maps.Keys(record)) {
		if pending && (key == "provisioning_status" || key == "operating_status") {
			continue
		}
		v, has := got[key]
		switch {
		case !has:
			c.differs(place + "." + key)
		case key == "updated_at" && record[key] != nil && v == nil:
			c.seen.updated++
		default:
			c.value(place+"."+key, record[key], v)
		}
	}
	for key := range got {
		if _, has := record[key]; !has {
			c.differs(place + "." + key)
		}
	}
}

// list finds an equal member of the other list for each. Of a collection (which is at the top) the order is
// part of the answer.
func (c *comparison) list(place string, record, got []any) {
	if ordered := strings.Count(place, ".") == 1; ordered || len(record) == 1 {
		for i := range record {
			c.value(place+"[]", record[i], got[i])
		}
		return
	}
	rest := slices.Clone(got)
	for _, want := range record {
		i := slices.IndexFunc(rest, func(v any) bool {
			try := comparison{maps.Clone(c.bindings), new(everywhere), nil}
			try.value(place+"[]", want, v)
			return len(try.places) == 0
		})
		if i < 0 {
			c.differs(place)
			return
		}
		c.value(place+"[]", want, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
}

// record is a line of the records: an exchange, rows, or what Neutron wrote.
type record struct {
	N       int               `json:"n"`
	Section string            `json:"section"`
	Command string            `json:"command"`
	Note    string            `json:"note"`
	As      string            `json:"as"`
	Service string            `json:"service"`
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Request json.RawMessage   `json:"request"`
	Raw     string            `json:"request_raw"`
	Headers map[string]string `json:"request_headers"`
	Status  int               `json:"status"`
	Reply   any               `json:"reply"`
	Text    string            `json:"reply_text"`
	LeftOut string            `json:"reply_left_out"`
	Allow   string            `json:"Allow"`
	Type    string            `json:"Content-Type"`

	Rows    map[string][]row `json:"rows"`
	Neutron map[string][]row `json:"neutron"`
	Gone    map[string][]any `json:"gone"`
}

// row is one of a table. A set of one member is a bare value.
type row map[string]any

func (r row) text(column string) string { s, _ := r[column].(string); return s }

func (r row) set(column string) (out []string) {
	switch v := r[column].(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			out = append(out, fmt.Sprint(e))
		}
	}
	return out
}

func (r row) pairs(column string) map[string]string {
	out := map[string]string{}
	of, _ := r[column].(map[string]any)
	for k, v := range of {
		out[k] = fmt.Sprint(v)
	}
	return out
}

// The comparison finds what differs, and where, and knows each object again.
func TestComparison(t *testing.T) {
	id := func(n int) string { return fmt.Sprintf("9c5a1e0c-64a3-4a4e-8e4f-%012d", n) }
	for _, c := range []struct{ name, record, got, places string }{
		{"the same", `{"a": {"id": "<x>", "n": 1, "t": "<time>", "l": [1, 2], "z": null}}`, `{"a": {"id": "` + id(1) + `", "n": 1, "t": "2026-01-01T00:00:00", "l": [2, 1], "z": null}}`, ""},
		{"a value", `{"a": {"n": 1}}`, `{"a": {"n": 2}}`, "a.n"},
		{"a type", `{"a": {"n": "1"}}`, `{"a": {"n": 1}}`, "a.n"},
		{"one more", `{"a": {}}`, `{"a": {"n": 2}}`, "a.n"},
		{"one less", `{"a": {"n": 1}}`, `{"a": {}}`, "a.n"},
		{"no time", `{"t": "<time>"}`, `{"t": "now"}`, "t"},
		{"a time of another form", `{"t": "<time>"}`, `{"t": "2026-01-01T00:00:00Z"}`, "t"},
		{"known again", `{"a": "<x>", "b": "pool_<x>"}`, `{"a": "` + id(1) + `", "b": "pool_` + id(1) + `"}`, ""},
		{"another one", `{"a": "<x>", "b": "pool_<x>"}`, `{"a": "` + id(1) + `", "b": "pool_` + id(2) + `"}`, "b"},
		{"two that are one", `{"a": "<x>", "b": "<y>"}`, `{"a": "` + id(1) + `", "b": "` + id(1) + `"}`, "b"},
		{"a key", `{"a": "<x>", "k": {"pool_<x>": "v"}}`, `{"a": "` + id(1) + `", "k": {"pool_` + id(2) + `": "v"}}`, "k.pool_*"},
		{"the order of a collection", `{"c": [{"n": 1}, {"n": 2}]}`, `{"c": [{"n": 2}, {"n": 1}]}`, "c[].n"},
		{"a set", `{"a": {"c": [{"n": 1}, {"n": 2}]}}`, `{"a": {"c": [{"n": 1}, {"n": 1}]}}`, "a.c"},
		{"a list that is shorter", `{"c": [1, 2]}`, `{"c": [1]}`, "c"},
		{"Neutron's names", `{"s": "neutron-<net-a> neutron-x"}`, `{"s": "net-a neutron-x"}`, ""},
		{"pending", `{"a": {"provisioning_status": "PENDING_CREATE", "operating_status": "OFFLINE"}}`, `{"a": {"provisioning_status": "ACTIVE", "operating_status": "ONLINE"}}`, ""},
		{"failed", `{"a": {"provisioning_status": "PENDING_CREATE"}}`, `{"a": {"provisioning_status": "ERROR"}}`, "a.provisioning_status"},
		{"offline", `{"a": {"provisioning_status": "ACTIVE", "operating_status": "OFFLINE"}}`, `{"a": {"provisioning_status": "ACTIVE", "operating_status": "ONLINE"}}`, "a.operating_status"},
		{"addresses", `{"r": {"vips": {"10.0.0.1:80": "x"}}}`, `{"r": {"vips": {"10.0.0.2:80": "x"}}}`, "r.vips"},
	} {
		var record, got any
		if err := errors.Join(json.Unmarshal([]byte(c.record), &record), json.Unmarshal([]byte(c.got), &got)); err != nil {
			t.Fatal(err)
		}
		d := comparison{bindings: bindings{}, seen: new(everywhere)}
		d.value("", record, got)
		if slices.Sort(d.places); strings.Join(d.places, ",") != c.places {
			t.Errorf("%s differs at %q, not %q", c.name, d.places, c.places)
		}
	}
}
