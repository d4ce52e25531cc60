package evpn

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/controlplane/ovn"
)

func TestParseStringList(t *testing.T) {
	for in, want := range map[string][]string{
		"": nil, "[]": nil, "['64512:1']": {"64512:1"}, `["a", u'b' , 'c',]`: {"a", "b", "c"}, "a, b,": {"a", "b"},
	} {
		got, err := ParseStringList(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		check(t, in, want, got)
	}
	for _, in := range []string{"[", "['a]", "['a' 'b']", "[a]", "['a'", "[u]"} {
		if got, err := ParseStringList(in); err == nil {
			t.Errorf("%s: %q and no error", in, got)
		}
	}
}

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

func FuzzParseStringList(f *testing.F) {
	f.Add("['64512:1', \"b\"]")
	f.Add("[u'a',]")
	f.Add("[u")
	f.Fuzz(func(t *testing.T, s string) {
		list, err := ParseStringList(s)
		if err == nil && strings.HasPrefix(strings.TrimSpace(s), "[") && len(list) > strings.Count(s, "'")+strings.Count(s, `"`) {
			t.Errorf("%d strings of %q", len(list), s)
		}
	})
}

func FuzzReadAnnotation(f *testing.F) {
	f.Add("1001", "64999", "['1:2']")
	f.Add("abc", "-1", "[")
	f.Fuzz(func(t *testing.T, vni, as, targets string) {
		a, present, fault := readAnnotation(map[string]string{keyVNI: vni, keyAS: as, keyTargets: targets})
		if !present || (fault == nil) != (a.vni > 0 && a.vni < 1<<24 && a.asn > 0 && fault == nil) {
			t.Errorf("%+v present %t fault %v", a, present, fault)
		}
	})
}

// What this package reads of a port, the rows have.
func TestKeysAreFollowed(t *testing.T) {
	for column, keys := range map[string][]string{
		"external_ids": {keyVNI, keyAS, keyTargets, keyImport, keyExport, keyExpose, keyAnnounce, keyNextHops, keyCIDRs},
		"options":      {optionMTU, optionNetwork},
	} {
		for _, k := range keys {
			if !ovn.ReadsPortBinding(column, k) {
				t.Errorf("Port_Binding.%s:%s is read and not followed", column, k)
			}
		}
	}
}
