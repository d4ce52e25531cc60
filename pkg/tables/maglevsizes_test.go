package tables

import (
	"bytes"
	"log/slog"
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestMaglevSizes(t *testing.T) {
	vip := func(address string, slots uint32) intent.VIP {
		a := netip.MustParseAddrPort(address)
		return intent.VIP{Key: intent.VIPKey{VNI: 1001, Protocol: intent.TCP, Addr: a.Addr(), Port: a.Port()}, Slots: slots, OVN: slots == 0}
	}
	all := func(vips ...intent.VIP) map[intent.VIPKey]intent.VIP {
		out := map[intent.VIPKey]intent.VIP{}
		for _, v := range vips {
			out[v.Key] = v
		}
		return out
	}
	many := func(slots uint32) (out []intent.VIP) {
		for i := range maglevLines + 1 {
			out = append(out, vip(netip.AddrPortFrom(netip.MustParseAddr("fd99::1"), uint16(i+1)).String(), slots))
		}
		return out
	}
	for _, tt := range []struct {
		name        string
		before, set map[intent.VIPKey]intent.VIP
		count       uint64
		want        []string
	}{
		{"new", nil, all(vip("10.99.0.1:80", 1021)), 0, nil},
		{"the same size", all(vip("10.99.0.1:80", 1021)), all(vip("10.99.0.1:80", 1021)), 0, nil},
		{"to OVN, and back", all(vip("10.99.0.1:80", 1021), vip("[fd99::1]:80", 0)), all(vip("10.99.0.1:80", 0), vip("[fd99::1]:80", 1021)), 0, nil},
		{
			"both families", all(vip("10.99.0.1:80", 1021), vip("[fd99::1]:80", 4093)), all(vip("10.99.0.1:80", 4093), vip("[fd99::1]:80", 1021)), 2,
			[]string{`vip="1001 10.99.0.1:80/tcp" from=1021 to=4093`, `vip="1001 [fd99::1]:80/tcp" from=4093 to=1021`},
		},
		{"many", all(many(1021)...), all(many(4093)...), maglevLines + 1, []string{`vips=33 to=[4093]`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			s := NewMaglevSizes(slog.New(slog.NewTextHandler(&b, nil)))
			s.Changed(MaglevChanges(tt.set, func(k intent.VIPKey) (intent.VIP, bool) { v, ok := tt.before[k]; return v, ok }))
			if s.Count() != tt.count || strings.Count(b.String(), "\n") != len(tt.want) {
				t.Errorf("%d changes, want %d:\n%s", s.Count(), tt.count, b.String())
			}
			for _, line := range tt.want {
				if !strings.Contains(b.String(), line) {
					t.Errorf("no %s in\n%s", line, b.String())
				}
			}
		})
	}
}
