// Package nightly tells tests whether they have the night: more time, and random seeds.
package nightly

import (
	"os"
	"testing"
	"time"
)

// On tells whether this is the nightly run, as SLUICE_NIGHTLY says.
func On() bool { return os.Getenv("SLUICE_NIGHTLY") != "" }

// Seed is for a test's random numbers: the fixed one, and another one each night. The log has it.
func Seed(t testing.TB, fixed uint64) uint64 {
	t.Helper()
	seed := fixed
	if On() {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d", seed)
	return seed
}
