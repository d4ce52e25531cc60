package configfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds the file: a configuration is never this long.
const maxFile = 8 << 20

// Load reads the file into c, which has the defaults. check then fills in the defaults that
// depend on other values, and reports what breaks a rule. Mistakes in the file are
// returned as Errors; c is of no use then.
func Load[T any](path string, c *T, check func(*Checker)) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	if len(b) > maxFile {
		return fmt.Errorf("configuration: %s is longer than %d bytes", path, maxFile)
	}
	return Parse(path, b, c, check)
}

// Parse does the same with the text of a file; name is what mistakes are reported with.
func Parse[T any](name string, text []byte, c *T, check func(*Checker)) error {
	d := &decoder{Checker{file: name, at: map[string]position{}}}
	root, err := document(name, text)
	if err != nil {
		return Errors{err}
	}
	if root != nil {
		d.value(root, reflect.ValueOf(c).Elem(), "")
	}
	// The rules are checked on what could be read, too; a value that could not
	// be read is reported once.
	bad := map[string]bool{}
	for _, e := range d.errs {
		bad[e.Key] = true
	}
	checked := len(d.errs)
	check(&d.Checker)
	errs := d.errs[:checked]
	for _, e := range d.errs[checked:] {
		if !bad[e.Key] {
			errs = append(errs, e)
		}
	}
	if len(errs) > 0 {
		errs.sort()
		return errs
	}
	return nil
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// document is the root node, nil for an empty file.
func document(name string, text []byte) (*yaml.Node, *Error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		e := &Error{File: name, Text: err.Error()}
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			e.Line, _ = strconv.Atoi(m[1])
			e.Text = "not YAML: " + m[2] + "; check indentation and quotes"
		}
		return nil, e
	}
	var second yaml.Node
	if err := dec.Decode(&second); !errors.Is(err, io.EOF) {
		return nil, &Error{File: name, Line: max(second.Line, 1), Text: `more than one document; remove what follows the line "---"`}
	}
	return doc.Content[0], nil
}

// Effective is a whole configuration with every default, as YAML. Secrets are
// redacted.
func Effective(c any) ([]byte, error) {
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(c); err != nil {
		return nil, fmt.Errorf("printing the configuration: %w", err)
	}
	if err := enc.Close(); err != nil {
		return nil, fmt.Errorf("printing the configuration: %w", err)
	}
	return b.Bytes(), nil
}
