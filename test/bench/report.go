package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
)

// result is one line of the table and of the JSON file.
type result struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Goal is "<= 3.5", or empty.
	Goal string `json:"goal"`
	Met  bool   `json:"met"`

	note string
}

type report struct{ results []result }

// goal is the most that a value should be; 0: none.
type goal float64

func atMost(v float64) goal { return goal(v) }

const noGoal = goal(0)

func (r *report) add(name string, value float64, unit string, g goal) {
	row := result{Name: name, Value: value, Unit: unit, Met: true}
	if g != noGoal {
		row.Goal, row.Met = fmt.Sprintf("<= %g", float64(g)), value <= float64(g)
		if !row.Met {
			row.note = fmt.Sprintf("%.0f %% over the goal", 100*(value/float64(g)-1))
		}
	}
	r.results = append(r.results, row)
}

// note adds a remark to the last line of the table.
func (r *report) note(text string) {
	row := &r.results[len(r.results)-1]
	if row.note != "" {
		text = row.note + "; " + text
	}
	row.note = text
}

func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tVALUE\tUNIT\tGOAL\tMET\tREMARK")
	missed := 0
	for _, row := range r.results {
		met := ""
		switch {
		case row.Goal != "" && row.Met:
			met = "yes"
		case !row.Met:
			met = "NO"
			missed++
		}
		fmt.Fprintf(w, "%s\t%.4g\t%s\t%s\t%s\t%s\n", row.Name, row.Value, row.Unit, row.Goal, met, row.note)
	}
	w.Flush()
	fmt.Fprintf(out, "%d results, %d goals missed\n", len(r.results), missed)
}

func (r *report) write(file string) error {
	list := r.results
	if list == nil {
		list = []result{}
	}
	b, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(b, '\n'), 0o644)
}
