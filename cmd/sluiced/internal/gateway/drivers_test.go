package gateway

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every table of the order has a driver, and a read-only one for dry runs if its rows need no BGP.
func TestEveryTableHasADriver(t *testing.T) {
	read := func(file string) string {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	names := func(text, pattern string) (out []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return out
	}
	files, err := filepath.Glob("../../../../pkg/tables/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, file := range files {
		order = append(order, names(read(file), `\btable\[\*Tables,[^\n]*\{\s*of: intent\.(\w+)`)...)
	}
	slices.Sort(order)
	run, dry, _ := strings.Cut(read("drivers.go"), "func (g *Gateway) Dry(")
	const drive = `tables\.Drive\(d, intent\.(\w+)`
	if got := names(run, drive); len(order) == 0 || !slices.Equal(got, order) {
		t.Errorf("drivers of %q, tables %q", got, order)
	}
	withoutBGP := slices.DeleteFunc(slices.Clone(order), func(name string) bool { return name == "Policies" || name == "Announcements" })
	if got := names(dry, drive); !slices.Equal(got, withoutBGP) {
		t.Errorf("a dry run has drivers of %q, tables %q", got, withoutBGP)
	}
}
