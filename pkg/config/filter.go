package config

import (
	"fmt"
	"net/netip"

	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// PrefixRule is a line of an import filter.
type PrefixRule struct {
	// Action is permit or deny. Required.
	Action FilterAction `yaml:"action"`
	// Prefix contains the prefixes that the rule matches. Required.
	Prefix netip.Prefix `yaml:"prefix"`
	// GE is the shortest length that matches. 0: the length of prefix.
	GE uint8 `yaml:"ge"`
	// LE is the longest length that matches. 0: with ge, a single address; without ge, the length
	// of prefix.
	LE uint8 `yaml:"le"`
}

// FilterAction is what a rule does.
type FilterAction string

// The actions.
const (
	FilterPermit FilterAction = "permit"
	FilterDeny   FilterAction = "deny"
)

// UnmarshalText reads permit or deny.
func (a *FilterAction) UnmarshalText(b []byte) error {
	return configfile.OneOf(a, b, FilterPermit, FilterDeny)
}

func (check rules) validateFilter(key string, rules []PrefixRule) {
	for i, r := range rules {
		at := fmt.Sprintf("%s[%d]", key, i)
		if r.Action == "" {
			check.FailAt(at+".action", "missing; write permit or deny")
		}
		if !r.Prefix.IsValid() {
			check.FailAt(at+".prefix", "missing; write a prefix such as 10.0.0.0/8")
			continue
		}
		if r.Prefix != r.Prefix.Masked() {
			check.FailAt(at+".prefix", "%s has bits set behind its length; write %s", r.Prefix, r.Prefix.Masked())
		}
		least, most := uint8(r.Prefix.Bits()), uint8(r.Prefix.Addr().BitLen())
		if r.GE != 0 && (r.GE < least || r.GE > most) {
			check.FailAt(at+".ge", "%d is not possible; use %d to %d", r.GE, least, most)
		}
		if r.LE != 0 && (r.LE < max(least, r.GE) || r.LE > most) {
			check.FailAt(at+".le", "%d is not possible; use %d to %d", r.LE, max(least, r.GE), most)
		}
	}
}
