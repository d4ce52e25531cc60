package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/ovn-sluice/sluice/pkg/output"
)

// print writes an answer in the format that was asked for.
func (o *options) print(w io.Writer, value any, people func(io.Writer) error) error {
	err := o.output.Print(w, value, people)
	if unknown, ok := errors.AsType[*output.FormatError](err); ok {
		return &usageError{unknown}
	}
	return err
}

// age is how long ago t was, in one unit.
func age(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch d := time.Since(t); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	default:
		return fmt.Sprintf("%dd", int(d.Hours()/24))
	}
}

// known is empty, and so a dash, where a value is not known.
func known[T any](v *T, write func(T) string) string {
	if v == nil {
		return ""
	}
	return write(*v)
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func count(n *int) string { return known(n, strconv.Itoa) }
