package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/ovn-sluice/sluice/test/bench/measure"
)

// result is one line of the table and of the JSON file.
type result struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	// Goal is "<= 3.5" or ">= 1.3", or empty.
	Goal string `json:"goal"`
	// Met is null without a goal.
	Met *bool `json:"met"`
	// Condition is under which the value holds: what the machine did beside it.
	Condition string `json:"condition"`

	note string
}

type report struct {
	results []result
	// condition is that of the results that name none.
	condition string
}

// goal is what a value should be; the zero value: anything.
type goal struct {
	limit float64
	least bool
}

func atMost(v float64) goal  { return goal{limit: v} }
func atLeast(v float64) goal { return goal{limit: v, least: true} }

var noGoal goal

func (g goal) String() string {
	switch {
	case g == noGoal:
		return ""
	case g.least:
		return fmt.Sprintf(">= %g", g.limit)
	}
	return fmt.Sprintf("<= %g", g.limit)
}

// miss says how far a value is from the goal; empty if it is met.
func (g goal) miss(v float64) string {
	switch {
	case g == noGoal:
	case g.least && v < g.limit:
		return fmt.Sprintf("%.1f %% under the goal", 100*(1-v/g.limit))
	case !g.least && v > g.limit:
		return fmt.Sprintf("%.1f %% over the goal", 100*(v/g.limit-1))
	}
	return ""
}

func (r *report) add(name string, value float64, unit string, g goal) {
	missed := g.miss(value)
	row := result{Name: name, Value: value, Unit: unit, Goal: g.String(), Condition: r.condition, note: missed}
	if g != noGoal {
		met := missed == ""
		row.Met = &met
	}
	r.results = append(r.results, row)
}

// all adds results of a part.
func (r *report) all(list []measure.Result) {
	for _, one := range list {
		g := noGoal
		if one.Goal != nil {
			g = goal{limit: one.Goal.Limit, least: one.Goal.Least}
		}
		r.add(one.Name, one.Value, one.Unit, g)
		if one.Note != "" {
			r.note(one.Note)
		}
		if one.Condition != "" {
			r.where(one.Condition)
		}
	}
}

// note adds a remark to the last line of the table.
func (r *report) note(text string) {
	row := &r.results[len(r.results)-1]
	if row.note != "" {
		text = row.note + "; " + text
	}
	row.note = text
}

// where adds to the condition of the last line of the table.
func (r *report) where(text string) {
	row := &r.results[len(r.results)-1]
	if row.Condition != "" {
		text = row.Condition + "; " + text
	}
	row.Condition = text
}

func (r *report) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURED\tVALUE\tUNIT\tGOAL\tMET\tCONDITION\tREMARK")
	goals, missed := 0, 0
	for _, row := range r.results {
		met := "-"
		if row.Met != nil {
			goals++
			met = "yes"
			if !*row.Met {
				met = "NO"
				missed++
			}
		}
		fmt.Fprintf(w, "%s\t%.4g\t%s\t%s\t%s\t%s\t%s\n", row.Name, row.Value, row.Unit, row.Goal, met, row.Condition, row.note)
	}
	w.Flush()
	fmt.Fprintf(out, "%d results, %d of %d goals missed\n", len(r.results), missed, goals)
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
