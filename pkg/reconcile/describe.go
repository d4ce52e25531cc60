package reconcile

import (
	"fmt"
	"reflect"
	"strings"
)

// describe is a row's value for people: what it says beyond its key. Fields that
// are not set are left out.
func describe[K, V comparable](k K, v V) string {
	var zero V
	r := reflect.ValueOf(v)
	switch {
	case v == zero:
		return "not as it was left"
	case r.Kind() != reflect.Struct:
		return fmt.Sprintf("%+v", v)
	}
	var words []string
	for i := range r.NumField() {
		f, name := r.Field(i), r.Type().Field(i).Name
		if !r.Type().Field(i).IsExported() || f.IsZero() && f.Kind() != reflect.Bool || f.Interface() == any(k) {
			continue
		}
		words = append(words, fmt.Sprintf("%s:%+v", name, f.Interface()))
	}
	if len(words) == 0 {
		return "there"
	}
	return strings.Join(words, " ")
}

// describeAll is a row for people that has one of the values.
func describeAll[K, V comparable](k K, values []V) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = describe(k, v)
	}
	if len(words) == 1 {
		return words[0]
	}
	return "not known: " + strings.Join(append(words, "nothing"), ", or ")
}
