package evpn

import (
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
