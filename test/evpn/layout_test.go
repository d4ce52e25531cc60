package evpn_test

import (
	"strings"
	"testing"
)

// A build with another layout of a map takes over without the loss of a packet.
// The other layout is this one by an older name: its rows are of no use to sluiced.
func TestStepToAnotherLayout(t *testing.T) {
	w := shared(t)
	streams := w.streams()
	w.kill("a1", "sluiced")
	const find = `find "$SLUICE_BPFFS" -name 'hosts_v*' -printf '%f '`
	w.exec("a1", "sh", "-c", `for pin in $(find "$SLUICE_BPFFS" -name 'hosts_v1' -o -name 'entries_v1'); do mv "$pin" "${pin%1}0"; done`)
	if got := w.exec("a1", "sh", "-c", find); strings.TrimSpace(got) != "hosts_v0" {
		t.Fatalf("pinned: %s", got)
	}
	w.startAgain("a1", "sluiced")
	w.ready("a1")
	if got := w.exec("a1", "sh", "-c", find); strings.TrimSpace(got) != "hosts_v1" {
		t.Errorf("pinned: %s", got)
	}
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.announced("b1", vniRed, redRoutes...)
}
