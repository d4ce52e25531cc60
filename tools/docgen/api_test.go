package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
)

// Each type that the page of the admin API names, of an endpoint or a field, has a section.
func TestTypesOfTheAdminAPIAreExplained(t *testing.T) {
	page := &bytes.Buffer{}
	if err := apiPage(page, "../../pkg/admin/nodeapi", "../../pkg/status"); err != nil {
		t.Fatal(err)
	}
	text, rows := page.String(), 0
	for _, row := range regexp.MustCompile("(?m)^\\| `[^`]+` \\| ([^|]+) \\| ([^|]+) \\|").FindAllStringSubmatch(text, -1) {
		cells := row[1:2]
		if strings.HasPrefix(row[0], "| `/") {
			cells = row[1:3]
		}
		for _, cell := range cells {
			name := strings.TrimPrefix(strings.TrimSuffix(cell, ", optional"), "list of ")
			if name == "Nothing" || name == "MAC" || !regexp.MustCompile(`^[A-Z]\w+$`).MatchString(name) {
				continue
			}
			rows++
			if !strings.Contains(text, "\n## "+name+"\n") {
				t.Errorf("%s has no section: %s", name, row[0])
			}
		}
	}
	if rows < 40 {
		t.Errorf("%d types are named", rows)
	}
}
