package rowform

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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
