package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
)

// field is an attribute of a request. check returns its value as it is kept, or what is wrong
// with it.
type field struct {
	name     string
	check    func(value any) (any, error)
	required bool
	// null is the value that null stands for; nil: null is as if it were not there.
	null any
}

type fields []field

// wrong is what is wrong with a value.
type wrong string

func (e wrong) Error() string { return string(e) }

// typeError is a value of a wrong type: Octavia blames the whole body for it.
type typeError string

func (e typeError) Error() string { return string(e) }

// object is a request's body: {"<name>": {…}}. Octavia calls the argument after the class that it
// is read into.
type object struct{ name, argument string }

// dict is a JSON object in the order in which the client wrote it: errors repeat it so.
type dict struct {
	keys   []string
	values map[string]any
}

// deepest is how far values may be in one another: no attribute is that deep.
const deepest = 20

var errTooDeep = errors.New("too many values in one another")

// decode reads a value: objects are dicts, and numbers stay as they are written.
func decode(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	if depth > deepest {
		return nil, errTooDeep
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decode(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		out := dict{values: map[string]any{}}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			name, _ := key.(string)
			if _, twice := out.values[name]; !twice {
				out.keys = append(out.keys, name)
			}
			if out.values[name], err = decode(d, depth+1); err != nil {
				return nil, err
			}
		}
		_, err = d.Token()
		return out, err
	}
	return token, nil
}

// read decodes the attributes into the struct that to points to. Attributes that are not there leave
// its fields as they are.
func (o object) read(body []byte, f fields, to any) error {
	missing := fail(http.StatusBadRequest, "Missing argument: %q", o.argument)
	if len(bytes.TrimSpace(body)) == 0 {
		return missing
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := decode(d, 0)
	if _, after := d.Token(); err != nil || !errors.Is(after, io.EOF) {
		return fail(http.StatusBadRequest, "Request is not in valid JSON format")
	}
	root, is := v.(dict)
	if !is {
		return missing
	}
	for _, key := range root.keys {
		if key != o.name {
			return fail(http.StatusBadRequest, "Unknown attribute for argument %s: %s", o.argument, key)
		}
	}
	attributes, is := root.values[o.name].(dict)
	if !is {
		return missing
	}
	values, err := f.take(o.argument+"."+o.name, attributes)
	if e, is := err.(typeError); is {
		return wrongValue(o.argument, repr(root), string(e))
	}
	if err != nil {
		return err
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

func wrongValue(name, value, why string) *Error {
	return fail(http.StatusBadRequest, "Invalid input for field/attribute %s. Value: '%s'. %s", name, value, why)
}

func (f fields) take(argument string, attributes dict) (map[string]any, error) {
	values := map[string]any{}
	for _, key := range attributes.keys {
		i := slices.IndexFunc(f, func(f field) bool { return f.name == key })
		if i < 0 {
			return nil, fail(http.StatusBadRequest, "Unknown attribute for argument %s: %s", argument, key)
		}
		value := attributes.values[key]
		if value == nil {
			if f[i].null != nil {
				values[key] = f[i].null
			}
			continue
		}
		kept, err := f[i].check(value)
		switch err := err.(type) {
		case nil:
		case typeError, *Error:
			return nil, err
		default:
			return nil, wrongValue(key, repr(value), err.Error())
		}
		values[key] = kept
	}
	for _, f := range f {
		if _, given := values[f.name]; f.required && !given {
			return nil, wrongValue(f.name, "None", "Mandatory field missing.")
		}
	}
	return values, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// text is a string of at most so many characters.
func text(most int) func(any) (any, error) {
	return func(value any) (any, error) {
		s, is := value.(string)
		if !is {
			return nil, wrong("Value should be string")
		}
		if strings.ContainsRune(s, 0) { // no string of OVSDB has one
			return nil, wrong("Value should have no NUL character")
		}
		if utf8.RuneCountInString(s) > most {
			return nil, wrong(fmt.Sprintf("Value should have a maximum character requirement of %d", most))
		}
		return s, nil
	}
}

func id(value any) (any, error) {
	s, is := value.(string)
	if !is || uuid.Validate(s) != nil {
		return nil, wrong("Value should be UUID format")
	}
	return s, nil
}

func address(value any) (any, error) {
	s, _ := value.(string)
	a, err := netip.ParseAddr(s)
	if err != nil || a.Zone() != "" {
		return nil, wrong("Value should be IPv4 or IPv6 format")
	}
	return a.Unmap().String(), nil
}

func boolean(value any) (any, error) {
	switch strings.ToLower(repr(value)) {
	case "true", "1", "t", "y", "yes", "on":
		return true, nil
	case "false", "0", "f", "n", "no", "off":
		return false, nil
	}
	return nil, typeError("Value not an unambiguous boolean: " + repr(value))
}

func number(least, most int) func(any) (any, error) {
	return func(value any) (any, error) {
		n, err := strconv.Atoi(strings.TrimSpace(fmt.Sprint(value)))
		switch {
		case err != nil:
			return nil, typeError(fmt.Sprintf("invalid literal for int() with base 10: %s", quoted(value)))
		case n < least:
			return nil, wrong(fmt.Sprintf("Value should be greater or equal to %d", least))
		case n > most:
			return nil, wrong(fmt.Sprintf("Value should be lower or equal to %d", most))
		}
		return n, nil
	}
}

func oneOf(words ...string) func(any) (any, error) {
	return func(value any) (any, error) {
		if s, is := value.(string); is && slices.Contains(words, s) {
			return s, nil
		}
		return nil, wrong(fmt.Sprintf("Value should be one of: %s", strings.Join(words, ", ")))
	}
}

// list is a list whose members pass a check.
func list(check func(any) (any, error)) func(any) (any, error) {
	return func(value any) (any, error) {
		values, is := value.([]any)
		if !is {
			return nil, typeError("Value not a valid list: " + repr(value))
		}
		out := make([]any, len(values))
		for i, v := range values {
			var err error
			if out[i], err = check(v); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

var tags = list(text(255))

// without refuses each value but null, false and nothing in a list or object.
func without(refusal *Error) func(any) (any, error) {
	return func(value any) (any, error) {
		switch v := value.(type) {
		case bool:
			if !v {
				return v, nil
			}
		case []any:
			if len(v) == 0 {
				return v, nil
			}
		case dict:
			if len(v.keys) == 0 {
				return nil, nil
			}
		}
		return nil, refusal
	}
}

// repr writes a value as Python prints it.
func repr(value any) string {
	switch v := value.(type) {
	case nil:
		return "None"
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return v
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = quoted(v[i])
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case dict:
		var parts []string
		for _, k := range v.keys {
			parts = append(parts, quoted(k)+": "+quoted(v.values[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

func quoted(value any) string {
	if s, is := value.(string); is {
		return "'" + s + "'"
	}
	return repr(value)
}
