package packet

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestBuildAndParse(t *testing.T) {
	v4, v4b := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	v6, v6b := netip.MustParseAddr("fd00::1"), netip.MustParseAddr("fd00::2")
	mac := intent.MAC{2, 0, 0, 0, 0, 1}
	for _, tc := range []struct {
		name string
		spec Spec
		want Flow
		len  int
	}{
		{"icmp", Spec{Src: v4, Dst: v4b, Protocol: 1}, Flow{Src: v4, Dst: v4b, Protocol: 1}, 60},
		{"icmp6", Spec{Src: v6, Dst: v6b, Protocol: 58}, Flow{Src: v6, Dst: v6b, Protocol: 58}, 14 + 40 + 8},
		{"tcp", Spec{Src: v4, Dst: v4b, Protocol: 6, SrcPort: 5, DstPort: 80}, Flow{v4, v4b, 6, 5, 80}, 60},
		{"udp6 of a length", Spec{Src: v6, Dst: v6b, Protocol: 17, SrcPort: 5, DstPort: 53, Length: 1000}, Flow{v6, v6b, 17, 5, 53}, 14 + 1000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.spec.SrcMAC, tc.spec.DstMAC = mac, mac
			b, err := Build(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) != tc.len {
				t.Errorf("%d bytes, want %d", len(b), tc.len)
			}
			if diff := cmp.Diff(tc.want, Parse(b), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBuildMistakes(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1")
	for _, s := range []Spec{{Src: v4, Dst: v6, Protocol: 17}, {Src: v4, Dst: v4, Protocol: 99}} {
		if _, err := Build(s); err == nil {
			t.Errorf("%+v: no error", s)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, b []byte) { Parse(b) })
}
