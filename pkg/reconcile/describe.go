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
