package output

import "github.com/ovn-sluice/sluice/pkg/status"

var signs = map[string]string{"add": "+", "change": "~", "delete": "-"}

// Changes is the table of a difference between what is wanted and what is there.
func Changes(changes []status.Change) *Table {
	t := &Table{Header: []string{"", "TABLE", "KEY", "ACTUAL", "WANTED", "WAITS FOR"}}
	for _, c := range changes {
		why := c.Held
		if c.Error != "" {
			why = c.Error
		}
		t.Add(signs[c.Action], c.Table, c.Key, c.Actual, c.Wanted, why)
	}
	return t
}
