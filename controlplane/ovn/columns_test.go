package ovn

import (
	"net/netip"
	"testing"
)

func FuzzParseMACColumn(f *testing.F) {
	f.Add("02:00:00:00:00:01 10.0.0.1 fd00::1", "unknown")
	f.Add("02:00:00:00:00:01 10.0.0.1/24 fd00::1/64", "dynamic")
	f.Fuzz(func(t *testing.T, a, b string) {
		list, _ := ParseMACColumn([]string{a, b})
		for _, e := range list {
			if e.MAC.IsZero() || e.MAC[0]&1 != 0 {
				t.Errorf("MAC %s", e.MAC)
			}
			for _, p := range e.Prefixes {
				sane(t, p)
			}
		}
	})
}

func sane(t *testing.T, p netip.Prefix) {
	t.Helper()
	a := p.Addr()
	if !p.IsValid() || a.Is4In6() || a.Zone() != "" || a.IsMulticast() || a.IsUnspecified() || a.IsLoopback() {
		t.Errorf("address %s", p)
	}
}

func FuzzParseCIDRs(f *testing.F) {
	f.Add("10.0.0.1/24 fd00::1/64")
	f.Add("::ffff:10.0.0.1 fe80::1%eth0")
	f.Fuzz(func(t *testing.T, s string) {
		list, _ := ParseCIDRs(s)
		for _, p := range list {
			sane(t, p)
		}
		addresses, _ := ParseAddresses(s)
		for _, a := range addresses {
			sane(t, netip.PrefixFrom(a, a.BitLen()))
		}
	})
}
