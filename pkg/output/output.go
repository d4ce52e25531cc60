package output

import (
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

// Print writes value, or calls people for the table.
func (f Format) Print(w io.Writer, value any, people func(io.Writer) error) error {
	if err := f.Check(); err != nil {
		return err
	}
	switch f {
	case JSON:
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(value)
	case YAML:
		b, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = w.Write(b)
		return err
	}
	return people(w)
}

// Table is what people read: a header and rows of cells.
type Table struct {
	Header []string
	Rows   [][]string
}

// Add appends a row. An empty cell is written as a dash.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write writes the table with its columns aligned.
func (t *Table) Write(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(t.Header, "\t"))
	for _, r := range t.Rows {
		line := slices.Clone(r)
		for i, c := range line {
			if c == "" {
				line[i] = "-"
			}
		}
		fmt.Fprintln(tw, strings.Join(line, "\t"))
	}
	return tw.Flush()
}
