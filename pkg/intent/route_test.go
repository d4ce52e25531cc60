package intent

import (
	"net/netip"
	"testing"
)

func TestLongestMatch(t *testing.T) {
	rows := map[netip.Prefix]string{}
	for _, p := range []string{"0.0.0.0/0", "10.0.0.0/8", "10.0.0.0/24", "10.0.0.7/32", "2001:db8::/32", "2001:db8::7/128"} {
		rows[netip.MustParsePrefix(p)] = p
	}
	for p, want := range map[string]string{
		"10.0.0.7/32": "10.0.0.7/32", "10.0.0.8/32": "10.0.0.0/24", "10.0.1.7/32": "10.0.0.0/8", "192.0.2.1/32": "0.0.0.0/0",
		"10.0.0.0/24": "10.0.0.0/24", "10.0.0.7/23": "10.0.0.0/8", // a longer row does not count
		"2001:db8::7/128": "2001:db8::7/128", "2001:db8::8/128": "2001:db8::/32", "2001:db9::/128": "", "::ffff:10.0.0.7/128": "",
	} {
		got, ok := LongestMatch(netip.MustParsePrefix(p), func(p netip.Prefix) (string, bool) { row, ok := rows[p]; return row, ok })
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q, %v, want %q", p, got, ok, want)
		}
	}
	if _, ok := LongestMatch(netip.Prefix{}, func(netip.Prefix) (int, bool) { return 0, true }); ok {
		t.Error("no prefix at all has a match")
	}
}
