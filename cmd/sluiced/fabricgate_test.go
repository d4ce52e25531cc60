package main

import (
	"errors"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/reconcile"
)

// A drain keeps back what the node announces of OVN, and not its own tunnel address.
func TestDrainKeepsTheVTEP(t *testing.T) {
	n := &node{}
	n.withdrawn.Store(true)
	if err := n.announcedFrom(); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("announcements in a drain: %v", err)
	}
	if err := n.fabricGate(); err != nil {
		t.Errorf("the VTEP in a drain: %v", err)
	}
	broken := "gone"
	n.fabricBroken.Store(&broken)
	if err := n.fabricGate(); !errors.Is(err, reconcile.ErrNotReady) {
		t.Errorf("the VTEP without a fabric device: %v", err)
	}
}
