package underlay

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// That no device of the underlay is there is an error, that one is lacking a warning.
func TestLackingDevices(t *testing.T) {
	none, gone := map[netip.Addr]error{}, map[netip.Addr]error{
		netip.MustParseAddr("192.0.2.1"):   errors.New("network is unreachable"),
		netip.MustParseAddr("2001:db8::1"): errors.New("network is unreachable"),
	}
	for name, row := range map[string]struct {
		wanted string
		lost   map[netip.Addr]error
		want   string
	}{
		"one":                      {"up1", none, ""},
		"one of two":               {"up1 up9", none, "warning up9"},
		"a name that is not there": {"up9", none, "warning up9, error all"},
		"no name":                  {"", none, "error all"},
		"no path":                  {"", gone, "warning 192.0.2.1, warning 2001:db8::1, error all"},
		"stale, and no path":       {"up1", gone, "warning 192.0.2.1, warning 2001:db8::1"},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[string]intent.UnderlayDevice{}
			for _, d := range strings.Fields(row.wanted) {
				wanted[d] = intent.UnderlayDevice{Name: d}
			}
			var got []string
			for _, o := range lacking(wanted, map[string]bool{"up1": true}, row.lost) {
				got = append(got, string(o.State)+" "+o.Key)
				if o.Reason != reason.NoDevice || o.Kind != kindDevice || o.Error == "" {
					t.Errorf("object %+v", o)
				}
				if o.State == status.Error && !strings.Contains(o.Error, "exposure.devices") {
					t.Errorf("no fix in %q", o.Error)
				}
			}
			if s := strings.Join(got, ", "); s != row.want {
				t.Errorf("told %q, want %q", s, row.want)
			}
		})
	}
}

// A device that nobody has is told by name, and one that is there is not.
func TestLackingDeviceByName(t *testing.T) {
	out := lackingDevices(map[string]intent.UnderlayDevice{"no-such-device": {}, "lo": {}}, nil)
	if len(out) != 1 || out[0].Key != "no-such-device" {
		t.Errorf("told %+v", out)
	}
}
