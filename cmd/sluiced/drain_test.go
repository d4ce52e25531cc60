package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/drain"
)

// A drain that was made and that the disk did not confirm is followed at once, and its outcome is
// not known to who asked; one that was not made is followed by nobody.
func TestDrainNotOnDisk(t *testing.T) {
	for _, row := range []struct {
		err              error
		unknown, follows bool
	}{
		{fmt.Errorf("the drain was begun: %w", drain.ErrNotOnDisk), true, true},
		{errors.New("no space left"), false, false},
	} {
		d := idleDaemon()
		d.drainChanged = make(chan struct{}, 1)
		_, err := d.drainChange(row.err, "the node is drained")
		if !errors.Is(err, row.err) || errors.Is(err, admin.ErrUnknown) != row.unknown || (len(d.drainChanged) == 1) != row.follows {
			t.Errorf("%v: %v, followed %t", row.err, err, len(d.drainChanged) == 1)
		}
	}
}
