package configfile

import (
	"reflect"
	"strings"
)

// keysOf lists the keys of a section in the order of its fields.
func keysOf(t reflect.Type) []string {
	keys := make([]string, 0, t.NumField())
	for f := range t.Fields() {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	return keys
}

func fieldByKey(v reflect.Value, key string) (reflect.Value, bool) {
	if key == "" {
		return reflect.Value{}, false
	}
	for i, k := range keysOf(v.Type()) {
		if k == key {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// closest is the known key that was probably meant, or "".
func closest(word string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if strings.EqualFold(k, strings.NewReplacer("_", "", "-", "").Replace(word)) {
			return k
		}
		if n := editDistance(strings.ToLower(word), strings.ToLower(k)); n < distance && n < len(k)-1 {
			best, distance = k, n
		}
	}
	return best
}

// editDistance is the number of letters to insert, remove or change.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
