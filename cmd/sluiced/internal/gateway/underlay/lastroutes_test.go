package underlay

import (
	"errors"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/link"
)

// madeUpRouting has a word for each destination: the device of its route, with a star for
// a default route, a question mark where it is not known whether it is one, and nothing
// where there is no path.
type madeUpRouting map[string]string

func (r madeUpRouting) Towards(a netip.Addr) (link.Underlay, error) {
	name := strings.TrimRight(r[a.String()], "*?")
	if name == "" {
		return link.Underlay{}, errors.New("network is unreachable")
	}
	return link.Underlay{Name: name}, nil
}

func (r madeUpRouting) ByDefault(a netip.Addr) (bool, error) {
	if strings.HasSuffix(r[a.String()], "?") {
		return false, errors.New("interrupted")
	}
	return strings.HasSuffix(r[a.String()], "*"), nil
}

func TestDevicesOfTheUnderlay(t *testing.T) {
	const four, six = "192.0.2.1", "2001:db8::1"
	// Each word of steps is what the routes to four and six are: "four/six".
	for name, row := range map[string]struct {
		left  string // by an earlier start
		steps string
		want  string // after each step, the devices joined by commas
	}{
		"routes of their own": {"", "up1/up2", "up1,up2"},
		"they move":           {"", "up1/up2 up3/up2 up3/up4", "up1,up2 up2,up3 up3,up4"},
		"a default route is the only one there is": {"", "up1*/up1*", "up1"},
		"and it moves":                              {"", "up1*/up1* up2*/up2*", "up1 up2"},
		"a default route in place of one's own":     {"", "up1/up1 mgmt*/up1 mgmt*/mgmt* mgmt*/mgmt* up2/up2", "up1 up1 up1 up1 up2"},
		"of IPv6 alone":                             {"", "up1/up2 up1/mgmt* up1/up3", "up1,up2 up1,up2 up1,up3"},
		"no path":                                   {"", "up1/up2 / up1/up2", "up1,up2 up1,up2 up1,up2"},
		"one has no path":                           {"", "up1/up2 up1/", "up1,up2 up1,up2"},
		"not known whether it is a default route":   {"", "up1/up2 mgmt?/up2", "up1,up2 up1,up2"},
		"a neighbour of the node itself":            {"", "lo/up2", "up2"},
		"restart, and no path":                      {"up1,up2", "/ up1/up2", "up1,up2 up1,up2"},
		"restart, and a default route in its place": {"up1", "mgmt*/mgmt* mgmt*/mgmt* up1/up2", "up1 up1 up1,up2"},
		"restart, IPv6 alone has lost its route":    {"up1,up2", "up1/mgmt*", "up1,up2"},
		"restart with the default route of before":  {"up1", "up1*/up1* up2*/up2*", "up1 up2"},
		"restart, and a route of its own elsewhere": {"up1", "up2/up2", "up2"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := &config.Config{}
			cfg.Exposure.Ports = config.SwitchOn
			cfg.BGP.Neighbors = []config.Neighbor{{Address: netip.MustParseAddr(four)}, {Address: netip.MustParseAddr(six)}}
			left := map[string]intent.UnderlayDevice{}
			for _, d := range strings.FieldsFunc(row.left, func(r rune) bool { return r == ',' }) {
				left[d] = intent.UnderlayDevice{Name: d}
			}
			w := newLastRoutes(cfg, slog.New(slog.DiscardHandler), left)
			var got []string
			for _, step := range strings.Fields(row.steps) {
				to4, to6, _ := strings.Cut(step, "/")
				w.routing = madeUpRouting{four: to4, six: to6}
				devices := w.devices()
				for name, d := range devices {
					if d.Name != name {
						t.Errorf("row %+v of %s", d, name)
					}
				}
				for a, path := range map[string]string{four: to4, six: to6} {
					if _, lost := w.lost[netip.MustParseAddr(a)]; lost != (path == "") {
						t.Errorf("%s: the path to %s is lost: %v", step, a, lost)
					}
				}
				got = append(got, strings.Join(slices.Sorted(maps.Keys(devices)), ","))
			}
			if s := strings.Join(got, " "); s != row.want {
				t.Errorf("devices %q, want %q", s, row.want)
			}
		})
	}
}

// What the configuration names, and links with a neighbour, are not looked up.
func TestNamedDevicesOfTheUnderlay(t *testing.T) {
	cfg := &config.Config{}
	w := newLastRoutes(cfg, slog.New(slog.DiscardHandler), map[string]intent.UnderlayDevice{"old": {Name: "old"}})
	w.routing = madeUpRouting{}
	if d := w.devices(); len(d) != 0 {
		t.Errorf("where nothing is exposed: %v", d)
	}
	cfg.Exposure.Gateways = config.SwitchOn
	cfg.BGP.Neighbors = []config.Neighbor{{Interface: "eth1"}}
	if d := slices.Collect(maps.Keys(w.devices())); !slices.Equal(d, []string{"eth1"}) {
		t.Errorf("of a link: %v", d)
	}
	cfg.Exposure.Devices = []string{"eth7"}
	if d := slices.Collect(maps.Keys(w.devices())); !slices.Equal(d, []string{"eth7"}) {
		t.Errorf("of the configuration: %v", d)
	}
}
