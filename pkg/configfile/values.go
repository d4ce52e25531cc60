package configfile

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// OneOf reads a value that is one of a few words; UnmarshalText of a type calls it.
func OneOf[T ~string](p *T, b []byte, allowed ...T) error {
	if slices.Contains(allowed, T(b)) {
		*p = T(b)
		return nil
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return fmt.Errorf("%q is not allowed; use %s", b, strings.Join(words, ", "))
}

// Duration is a time span, written as 90s, 1m30s or 500ms.
type Duration struct{ time.Duration }

// Seconds makes a Duration.
func Seconds(n int) Duration { return Duration{time.Duration(n) * time.Second} }

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a span; it is never negative.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write a number with a unit, such as 90s", b)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative; use 0s or more", b)
	}
	d.Duration = v
	return nil
}

// Redacted is what a Secret prints as.
const Redacted = "[redacted]"

// Secret is a string that prints as "[redacted]".
type Secret struct{ value string }

// Reveal is the value itself.
func (s Secret) Reveal() string { return s.value }

// IsZero tells whether there is none.
func (s Secret) IsZero() bool { return s.value == "" }

// String hides the value.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return Redacted
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the value.
func (s *Secret) UnmarshalText(b []byte) error { s.value = string(b); return nil }
