package kernel

import (
	"testing"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

func TestHashHasPorts(t *testing.T) {
	for _, c := range []struct {
		policy, fields string
		want, wrong    bool
	}{
		{policy: "0", fields: "0"},
		{policy: "1", fields: "0", want: true},
		{policy: "2", fields: "0"},
		{policy: "3", fields: "7"}, // addresses and protocol, the kernel's default
		{policy: "3", fields: "55", want: true},
		{policy: "3", fields: "0x0010", want: true},
		{policy: "3", fields: "", wrong: true},
	} {
		has, err := hashHasPorts(c.policy, c.fields)
		if has != c.want || (err != nil) != c.wrong {
			t.Errorf("policy %s, fields %q: %v, %v", c.policy, c.fields, has, err)
		}
	}
	for _, ipv6 := range []bool{false, true} {
		if _, err := HashHasPorts(netns.Namespace{}, ipv6); err != nil {
			t.Error(err)
		}
	}
}
