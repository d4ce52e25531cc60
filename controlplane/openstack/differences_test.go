package openstack

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// reasons is testdata/differences.txt: where answers and rows may differ from the records, and why.
type reasons struct {
	// places by the number of a record
	places     map[int][]string
	everywhere map[string]bool
}

var columns = regexp.MustCompile(` {2,}`)

func readReasons(t *testing.T) reasons {
	raw, err := os.ReadFile("testdata/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := reasons{map[int][]string{}, map[string]bool{}}
	for i, line := range strings.Split(string(raw), "\n") {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := columns.Split(line, 3)
		if len(parts) != 3 {
			t.Fatalf("differences.txt:%d: no numbers, places and reason, two spaces between them", i+1)
		}
		if parts[0] == "everywhere" {
			out.everywhere[parts[1]] = true
			continue
		}
		for _, n := range numbers(t, i+1, parts[0]) {
			if _, twice := out.places[n]; twice {
				t.Errorf("differences.txt:%d: %d has two lines", i+1, n)
			}
			out.places[n] = strings.Split(parts[1], ",")
			slices.Sort(out.places[n])
		}
	}
	return out
}

// numbers reads 1,4-6. A range has all numbers between its ends: records that are none of them have no line.
func numbers(t *testing.T, line int, text string) (out []int) {
	for _, part := range strings.Split(text, ",") {
		first, last, ranged := strings.Cut(part, "-")
		if !ranged {
			last = first
		}
		from, err1 := strconv.Atoi(first)
		to, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || to < from {
			t.Fatalf("differences.txt:%d: %q is no number of a record", line, part)
		}
		for n := from; n <= to; n++ {
			out = append(out, n)
		}
	}
	return out
}

// check compares the differences that there are with those of the table.
func (w reasons) check(t *testing.T, p sums) {
	for _, n := range slices.Sorted(maps.Keys(p.different)) {
		d := p.different[n]
		switch listed, has := w.places[n]; {
		case !has:
			t.Errorf("%d  %s  differs, and differences.txt has no line for it\n%s", n, strings.Join(d.places, ","), d.detail)
		case !slices.Equal(listed, d.places):
			t.Errorf("%d differs at %s; differences.txt has %s\n%s", n, strings.Join(d.places, ","), strings.Join(listed, ","), d.detail)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(w.places)) {
		if _, differs := p.different[n]; !differs {
			t.Errorf("%d does not differ any more, or is not replayed: its line in differences.txt has to go", n)
		}
	}
	for what, n := range map[string]int{"pending": p.seen.pending, "updated": p.seen.updated, "deleted": p.seen.deleted} {
		if (n > 0) != w.everywhere[what] {
			t.Errorf("everywhere %s: %d times; differences.txt has it: %t", what, n, w.everywhere[what])
		}
	}
}
