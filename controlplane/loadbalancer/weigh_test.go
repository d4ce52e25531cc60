package loadbalancer

import (
	"net/netip"
	"testing"
)

func TestWeigh(t *testing.T) {
	vips := map[string]string{"10.1.0.1:80": "10.0.0.1:80,10.0.0.2:80", "[fd00::1]:80": "[fd00::2]:80"}
	zero, large := uint16(0), uint16(257)
	for _, tt := range []struct {
		name, was, held, backend string
		weight                   *uint16
		want, wrong              string
	}{
		{name: "drained", backend: "10.0.0.2:80", weight: &zero, want: "10.0.0.2:80=0"},
		{name: "beside others", was: "[fd00::2]:80=3, 10.0.0.1:80=2", backend: "10.0.0.2:80", weight: &zero, want: "10.0.0.1:80=2,10.0.0.2:80=0,[fd00::2]:80=3"},
		{name: "taken out", was: "10.0.0.1:80=2,10.0.0.2:80=0", backend: "10.0.0.2:80", want: "10.0.0.1:80=2"},
		{name: "the last", was: "10.0.0.2:80=0", backend: "10.0.0.2:80", want: ""},
		{name: "IPv6", backend: "[fd00::2]:80", weight: &zero, want: "[fd00::2]:80=0"},
		{name: "another port", backend: "10.0.0.2:81", weight: &zero, wrong: "no such backend"},
		{name: "taken out of what has left", was: "10.0.0.9:80=0", backend: "10.0.0.9:80", want: ""},
		{name: "taken out of what has left and is held alone", was: "10.0.0.1:80=2", held: "10.0.0.9:80=0", backend: "10.0.0.9:80", want: "10.0.0.1:80=2"},
		{name: "drained after it has left", was: "10.0.0.9:80=1", backend: "10.0.0.9:80", weight: &zero, wrong: "no such backend"},
		{name: "too much", backend: "10.0.0.2:80", weight: &large, wrong: "bad weight: 257 is none from 0 to 256"},
		{name: "what is there cannot be read", was: "x=1", backend: "10.0.0.2:80", weight: &zero, wrong: `options:sluice-weights: backend "x": no IP address`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			row := Row{VIPs: vips, Options: map[string]string{"sluice-weights": tt.was}, Held: tt.held}
			got, err := Weigh(row, nil, netip.MustParseAddrPort(tt.backend), tt.weight)
			said := ""
			if err != nil {
				said = err.Error()
			}
			if got != tt.want || said != tt.wrong {
				t.Errorf("%q (%q), want %q (%q)", got, said, tt.want, tt.wrong)
			}
		})
	}
}
