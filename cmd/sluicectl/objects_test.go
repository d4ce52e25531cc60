package main

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// An object that fails stops no other, and the error names it.
func TestDoEach(t *testing.T) {
	done := 0
	ok := object{"a", func(context.Context) error { done++; return nil }}
	bad := object{"b", func(context.Context) error { return errors.New("no") }}
	failed, err := doEach(t.Context(), []object{ok, bad, ok})
	if done != 2 || !slices.Equal(failed, []string{"", "no", ""}) || err == nil || err.Error() != "b: no" {
		t.Errorf("%d done, %q, %v", done, failed, err)
	}
	failed, err = doEach(t.Context(), []object{bad, bad, bad, ok, bad})
	if len(failed) != 5 || err == nil || err.Error() != "b, and 2 others: no\nb: no" {
		t.Errorf("%q, %v", failed, err)
	}
}
