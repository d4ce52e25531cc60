package rowform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// pairs are a JSON object whose order is kept, as Python's dictionaries keep theirs.
type pairs[V any] []pair[V]

type pair[V any] struct {
	key   string
	value V
}

// Counts count by name, in a fixed order.
type Counts pairs[int]

// States are members' states by their IDs, in a fixed order.
type States pairs[string]

// Get is 0 for a name that is not there.
func (c Counts) Get(name string) int { return pairs[int](c).get(name) }

// Add changes a count. One that reaches 0 goes.
func (c *Counts) Add(name string, by int) {
	p := (*pairs[int])(c)
	if n := p.get(name) + by; n > 0 {
		p.set(name, n)
	} else {
		p.drop(name)
	}
	if *c == nil {
		*c = Counts{}
	}
}

// Names are those with a count.
func (c Counts) Names() []string { return pairs[int](c).keys() }

// String is the JSON object as Python writes it.
func (c Counts) String() string { return pairs[int](c).text() }

// UnmarshalJSON reads a JSON object.
func (c *Counts) UnmarshalJSON(raw []byte) error {
	*c = Counts{}
	return (*pairs[int])(c).read(raw)
}

// Get is empty for a member that is not there.
func (s States) Get(id string) string { return pairs[string](s).get(id) }

// Set gives a member a state, and takes it away if that is empty.
func (s *States) Set(id, state string) {
	if state == "" {
		(*pairs[string])(s).drop(id)
	} else {
		(*pairs[string])(s).set(id, state)
	}
}

// String is the JSON object as Python writes it.
func (s States) String() string { return pairs[string](s).text() }

// UnmarshalJSON reads a JSON object.
func (s *States) UnmarshalJSON(raw []byte) error {
	*s = nil
	return (*pairs[string])(s).read(raw)
}

func (p pairs[V]) index(key string) int {
	return slices.IndexFunc(p, func(e pair[V]) bool { return e.key == key })
}

func (p pairs[V]) get(key string) (v V) {
	if i := p.index(key); i >= 0 {
		return p[i].value
	}
	return v
}

func (p *pairs[V]) set(key string, v V) {
	if i := p.index(key); i >= 0 {
		(*p)[i].value = v
		return
	}
	*p = append(*p, pair[V]{key, v})
}

func (p *pairs[V]) drop(key string) {
	*p = slices.DeleteFunc(*p, func(e pair[V]) bool { return e.key == key })
}

func (p pairs[V]) keys() []string {
	out := make([]string, len(p))
	for i, e := range p {
		out[i] = e.key
	}
	return out
}

// text writes as Python's json.dumps does.
func (p pairs[V]) text() string {
	out := make([]string, len(p))
	for i, e := range p {
		out[i] = fmt.Sprintf("%s: %s", jsonText(e.key), jsonText(e.value))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

func (p *pairs[V]) read(raw []byte) error {
	if p.readPlain(string(raw)) {
		return nil
	}
	*p = (*p)[:0]
	return p.readAny(raw)
}

// readAny reads any JSON object.
func (p *pairs[V]) readAny(raw []byte) error {
	if !json.Valid(raw) {
		return fmt.Errorf("%.40q is not JSON", raw)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return fmt.Errorf("%.40q is not a JSON object", raw)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var v V
		if err := d.Decode(&v); err != nil {
			return err
		}
		p.set(key.(string), v)
	}
	return nil
}

// readPlain reads an object of numbers, or of strings without anything that JSON escapes: what the rows have, of
// which a list reads thousands. It tells whether that is one.
func (p *pairs[V]) readPlain(text string) bool {
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == '\\' || c > '~' }) {
		return false
	}
	text, ok := strings.CutPrefix(text, "{")
	for first := true; ok; first = false {
		text = strings.TrimLeft(text, " ")
		if text == "}" && first {
			return true
		}
		var key string
		var v V
		if key, text, ok = plainText(text); !ok {
			return false
		}
		if text, ok = strings.CutPrefix(strings.TrimLeft(text, " "), ":"); !ok {
			return false
		}
		if text, ok = readValue(strings.TrimLeft(text, " "), &v); !ok {
			return false
		}
		p.set(key, v)
		if text = strings.TrimLeft(text, " "); text == "}" {
			return true
		}
		text, ok = strings.CutPrefix(text, ",")
	}
	return false
}

// plainText cuts a string with its quotes off the front.
func plainText(text string) (value, rest string, ok bool) {
	if text, ok = strings.CutPrefix(text, `"`); !ok {
		return "", text, false
	}
	return strings.Cut(text, `"`)
}

// readValue cuts a value, a string or a number of at most nine digits, off the front.
func readValue(text string, to any) (rest string, ok bool) {
	switch to := to.(type) {
	case *string:
		*to, text, ok = plainText(text)
		return text, ok
	case *int:
		digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
		if digits == 0 || digits > 9 || digits > 1 && text[0] == '0' {
			return text, false
		}
		n, err := strconv.Atoi(text[:digits])
		*to = n
		return text[digits:], err == nil
	}
	return text, false
}

func jsonList(list []string) string {
	out := make([]string, len(list))
	for i, v := range list {
		out[i] = jsonText(v)
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// jsonText writes a string or number; these always marshal.
func jsonText(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null"
	}
	return strings.TrimSuffix(b.String(), "\n")
}
