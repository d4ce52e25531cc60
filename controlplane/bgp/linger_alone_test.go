package bgp

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// E14: a VTEP's only route that is withdrawn leaves its traffic to the default route, if there
// is one, at once; the VTEP stays known for what is on its way.
func TestWithdrawnAlone(t *testing.T) {
	for _, f := range []struct{ route, other, wide string }{
		{"10.70.0.0/16", "10.71.0.0/16", "0.0.0.0/0"}, {"10.70.0.1/32", "2001:db8:71::/48", "0.0.0.0/0"}, {"2001:db8:70::/48", "10.71.0.0/16", "::/0"},
	} {
		with := func(rows string) string {
			return strings.NewReplacer("R", f.route, "O", f.other, "W", f.wide).Replace(rows)
		}
		for _, tt := range []struct {
			name   string
			before []string // at 0
			steps  []string // at 9 s
			want   string   // at 9 s, of the route
			goes   time.Duration
		}{
			{"default of another node", []string{"+B W", "+A R"}, []string{"-A R"}, "", 0},
			{"default of this node", []string{"+me W", "+A R"}, []string{"-A R"}, "", 0},
			{"default that comes later", []string{"+A R"}, []string{"-A R", "+B W"}, "", 0},
			{"two reflectors", []string{"+B W", "+A R", "+A2 R"}, []string{"-A R", "-A2 R"}, "", 0},
			{"no default", []string{"+A R"}, []string{"-A R"}, "R>A", 30 * time.Second},
			{"default of another tenant", []string{"+B/1002 W", "+A R"}, []string{"-A R"}, "R>A", 30 * time.Second},
			{"all of a node", []string{"+B W", "+A R", "+A O"}, []string{"-A O", "-A R"}, "R>A", 30 * time.Second},
			{"all of a node, one of them another tenant's", []string{"+B W", "+A R", "+A/1002 O"}, []string{"-A/1002 O", "-A R"}, "R>A", 30 * time.Second},
		} {
			t.Run(f.route+" "+tt.name, func(t *testing.T) {
				s := newScene(t, 30*time.Second)
				each := func(steps []string) (out []string) {
					for _, st := range steps {
						out = append(out, with(st))
					}
					return out
				}
				has := func() string {
					for _, row := range strings.Fields(s.rows()) {
						if strings.HasPrefix(row, f.route) {
							return row
						}
					}
					return ""
				}
				s.do(0, each(tt.before)...)
				s.do(9*time.Second, each(tt.steps)...)
				s.do(9*time.Second + settleTime)
				if got := has(); got != with(tt.want) {
					t.Errorf("after it was withdrawn: %q, want %q", got, with(tt.want))
				}
				a := netip.AddrFrom4([4]byte{192, 0, 2, 'A'})
				s.do(38 * time.Second)
				if s.rib.vteps[a] == nil {
					t.Error("the VTEP is not known any more")
				}
				s.do(9*time.Second + tt.goes + 31*time.Second)
				s.do(9*time.Second + tt.goes + 62*time.Second)
				if s.rib.vteps[a] != nil || has() != "" {
					t.Errorf("in the end: %q", has())
				}
			})
		}
	}
	// A route that went long before is no company.
	s := newScene(t, 30*time.Second)
	s.do(0, "+B 0.0.0.0/0", "+A 10.0.0.1/32", "+A 10.0.0.2/32")
	s.do(9*time.Second, "-A 10.0.0.1/32")
	s.do(12*time.Second, "-A 10.0.0.2/32")
	if got := s.rows(); got != "0.0.0.0/0>B" {
		t.Error(got)
	}
}
