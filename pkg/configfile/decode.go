package configfile

import (
	"encoding"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// decoder fills Go values from YAML nodes. It goes on after a mistake, so that
// all of them are found, and it remembers where each key was for the rules that
// are checked afterwards.
type decoder struct{ Checker }

// Defaulter is a value in a list or map that has defaults of its own. SetDefaults is
// called before its keys are read.
type Defaulter interface{ SetDefaults() }

var prefixType = reflect.TypeFor[netip.Prefix]()

func (d *decoder) fail(n *yaml.Node, path, format string, args ...any) {
	d.errs = append(d.errs, &Error{File: d.file, Line: n.Line, Column: n.Column, Key: path, Text: fmt.Sprintf(format, args...)})
}

func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	if path != "" {
		d.at[path] = position{n.Line, n.Column}
	}
	if n.Kind == yaml.AliasNode {
		d.fail(n, path, "YAML aliases are not supported; write the value out")
		return
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		return
	}
	if t, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(n, v, t, path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
}

func (d *decoder) text(n *yaml.Node, v reflect.Value, t encoding.TextUnmarshaler, path string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "want one value, found %s", kindName(n))
		return
	}
	s := n.Value
	if s == "" && v.Type() != prefixType {
		v.SetZero()
		return
	}
	// A single address is a prefix of full length.
	if v.Type() == prefixType && !strings.Contains(s, "/") {
		if a, err := netip.ParseAddr(s); err == nil {
			s = fmt.Sprintf("%s/%d", a, a.BitLen())
		}
	}
	if err := t.UnmarshalText([]byte(s)); err != nil {
		d.fail(n, path, "%s", explain(v.Type(), s, err))
	}
}

// explain turns the errors of the standard library into a sentence that says
// what to write.
func explain(t reflect.Type, s string, err error) string {
	switch t {
	case prefixType:
		return fmt.Sprintf("%q is not an address or prefix; write 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32", s)
	case reflect.TypeFor[netip.Addr]():
		return fmt.Sprintf("%q is not an IP address; write 192.0.2.1 or 2001:db8::1", s)
	}
	return err.Error()
}

func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "want keys below (%s), found %s", strings.Join(keysOf(v.Type()), ", "), kindName(n))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		sub := join(path, key.Value)
		if line, dup := seen[key.Value]; dup {
			d.fail(key, sub, "given twice, first in line %d; remove one", line)
			continue
		}
		seen[key.Value] = key.Line
		f, ok := fieldByKey(v, key.Value)
		if key.Kind != yaml.ScalarNode || !ok {
			d.unknown(key, v.Type(), path)
			continue
		}
		d.value(val, f, sub)
	}
}

func (d *decoder) unknown(key *yaml.Node, t reflect.Type, path string) {
	keys := keysOf(t)
	where := "at the top"
	if path != "" {
		where = "in " + path
	}
	if best := closest(key.Value, keys); best != "" {
		d.fail(key, join(path, key.Value), "unknown key; did you mean %s?", best)
		return
	}
	d.fail(key, join(path, key.Value), "unknown key; %s these are known: %s", where, strings.Join(keys, ", "))
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "want keys with values, found %s", kindName(n))
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		sub := join(path, key.Value)
		before := len(d.errs)
		k := reflect.New(v.Type().Key()).Elem()
		d.value(key, k, sub)
		if len(d.errs) > before {
			continue
		}
		if v.MapIndex(k).IsValid() {
			d.fail(key, sub, "given twice; remove one")
			continue
		}
		e := NewElement(v.Type().Elem())
		d.value(val, e, sub)
		// A broken rule about an entry is about its key.
		d.at[sub] = position{key.Line, key.Column}
		v.SetMapIndex(k, e)
	}
}

func (d *decoder) list(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, path, "want a list, found %s; write it as [a, b] or one \"- a\" a line", kindName(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), 0, len(n.Content))
	for i, c := range n.Content {
		e := NewElement(v.Type().Elem())
		d.value(c, e, fmt.Sprintf("%s[%d]", path, i))
		out = reflect.Append(out, e)
	}
	v.Set(out)
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, path string) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "want one value, found %s", kindName(n))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		switch n.Value {
		case "true", "on":
			v.SetBool(true)
		case "false", "off":
			v.SetBool(false)
		default:
			d.fail(n, path, "%q is neither true nor false", n.Value)
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		x, err := strconv.ParseUint(n.Value, 10, v.Type().Bits())
		if err != nil {
			limit := uint64(1)<<v.Type().Bits() - 1
			if errors.Is(err, strconv.ErrRange) {
				d.fail(n, path, "%s is too large; use 0 to %d", n.Value, limit)
			} else {
				d.fail(n, path, "%q is not a whole number; use 0 to %d", n.Value, limit)
			}
			return
		}
		v.SetUint(x)
	default:
		d.fail(n, path, "no value of type %s can be given here", v.Type())
	}
}

// NewElement is an entry of a list or map of which no key is given.
func NewElement(t reflect.Type) reflect.Value {
	e := reflect.New(t)
	if df, ok := e.Interface().(Defaulter); ok {
		df.SetDefaults()
	}
	return e.Elem()
}

func kindName(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys with values"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		return fmt.Sprintf("%q", n.Value)
	}
	return "something else"
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
