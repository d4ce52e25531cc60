// Package clidoc writes the reference page of a program from its commands, so
// that the page says what --help says.
//
// It owns the hidden command "reference" and the form of these pages. It promises
// that equal commands give equal pages, so that a check can compare them with
// those in docs/reference. It reads nothing but the commands, and writes to the
// writer that it is given alone.
package clidoc
