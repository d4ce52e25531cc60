package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"sigs.k8s.io/yaml"
)

// Format is how an answer is written.
type Format string

// The formats.
const (
	People Format = "table"
	JSON   Format = "json"
	YAML   Format = "yaml"
)

// Formats are the words of all formats.
func Formats() []string { return []string{string(People), string(JSON), string(YAML)} }

// FormatError is a word that is no format.
type FormatError struct{ Word string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("unknown output format %q: use table, json or yaml", e.Word)
}

// Check tells whether the format is one of those that Print knows.
func (f Format) Check() error {
	if !slices.Contains(Formats(), string(f)) {
		return &FormatError{string(f)}
	}
	return nil
}

// Print writes value, or calls people for the table. Nothing of it is a command to a terminal;
// in JSON and YAML such characters are escaped, and the value is the same.
func (f Format) Print(w io.Writer, value any, people func(io.Writer) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	switch f {
	case JSON:
		return writeJSON(w, value)
	case YAML:
		return writeYAML(w, value)
	}
	return people(Writer(w))
}

// writeYAML writes JSON, which is YAML, too, and has escapes for all characters, where YAML would have
// some as they are that a terminal takes for commands, or would not have them at all.
func writeYAML(w io.Writer, value any) error {
	b, err := json.Marshal(value)
	if err != nil {
		return err
	}
	unclean := func(b []byte) bool {
		return bytes.ContainsFunc(b, func(r rune) bool { return r != '\n' && commands(r) })
	}
	if unclean(b) {
		return writeJSON(w, value)
	}
	if b, err = yaml.JSONToYAML(b); err != nil {
		return err
	}
	if unclean(b) {
		return writeJSON(w, value)
	}
	_, err = w.Write(b)
	return err
}

func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(Writer(w))
	e.SetIndent("", "  ")
	return e.Encode(value)
}

// Table is what people read: a header and rows of cells.
type Table struct {
	Header []string
	Rows   [][]string
}

// Add appends a row. An empty cell is written as a dash, and each one clean.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the table with its columns aligned.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	for _, r := range t.Rows {
		line := slices.Clone(r)
		for i, c := range line {
			if line[i] = Clean(c); c == "" {
				line[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(line, "\t"))
	}
	return tw.Flush()
}
