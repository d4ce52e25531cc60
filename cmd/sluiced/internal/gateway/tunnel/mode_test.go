package tunnel

import (
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovn-sluice/sluice/cmd/sluiced/internal/plane"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/loop"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// A VRF that leaves the kernel path of the whole node waits until sluice-vxlan has the UDP port.
func TestTurn(t *testing.T) {
	for name, row := range map[string]struct{ perVRF, preparing, may bool }{
		"the port is there":         {false, false, true},
		"the port is still to come": {false, true, false},
		"from eBPF, as a whole":     {true, true, true},
	} {
		tn := Tunnel{cfg: Config{PerVRF: row.perVRF}}
		tn.preparing.Store(row.preparing)
		if err := tn.Turn(); (err == nil) != row.may {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the other device mode had is removed in the end, however often that fails, and devices are looked
// at again from the first try on.
func TestModeEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		log := slog.New(slog.NewTextHandler(&text, nil))
		tn := Tunnel{log: log, looks: loop.NewSignal(), tables: tables.New(tables.Drivers{}, tables.Sources{
			OVN: func() bool { return true }, BGP: func() bool { return true }, Pending: func(intent.VNI) bool { return false },
			Lingers: func(intent.NextHopSet, func(netip.Addr) bool) bool { return false },
		}, tables.Options{Status: status.NewRegistry(log), Log: log})}
		tn.changing.Store(true)
		var tries []time.Duration
		begin := time.Now()
		end := modeEnd{&tn, func() error {
			if tries = append(tries, time.Since(begin)); len(tries) < 3 {
				return errors.New("busy")
			}
			return nil
		}}
		if !plane.Make(t.Context(), end, plane.Pace{Every: modeInterval, Pause: modePause}, "cannot be removed", log) {
			t.Fatal("given up")
		}
		first := tries[0]
		if want := []time.Duration{first, first + modePause, first + 2*modePause}; !slices.Equal(tries, want) {
			t.Errorf("tries after %v, want %v", tries, want)
		}
		if tn.changing.Load() || len(tn.looks) != 1 {
			t.Errorf("changing %t, %d looks", tn.changing.Load(), len(tn.looks))
		}
		if got := text.String(); strings.Count(got, "cannot be removed") != 1 || strings.Count(got, "the other device mode has ended") != 1 {
			t.Error(got)
		}
	})
}
