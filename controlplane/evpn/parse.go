package evpn

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// ParseStringList reads a list of strings as Python prints it: ['a', 'b'],
// single or double quotes, u” too. It also takes the plain form a,b.
func ParseStringList(s string) ([]string, error) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "[") {
		var out []string
		for w := range strings.SplitSeq(s, ",") {
			if w = strings.TrimSpace(w); w != "" {
				out = append(out, w)
			}
		}
		return out, nil
	}
	if !strings.HasSuffix(s, "]") || len(s) < 2 {
		return nil, fmt.Errorf("list %q has no end", s)
	}
	rest := strings.TrimSpace(s[1 : len(s)-1])
	var out []string
	for rest != "" {
		if strings.HasPrefix(rest, "u'") || strings.HasPrefix(rest, `u"`) {
			rest = rest[1:]
		}
		if rest[0] != '\'' && rest[0] != '"' {
			return nil, fmt.Errorf("list %q: want quoted strings", s)
		}
		end := strings.IndexByte(rest[1:], rest[0])
		if end < 0 {
			return nil, fmt.Errorf("list %q: a string has no end", s)
		}
		out = append(out, rest[1:1+end])
		rest = strings.TrimSpace(rest[2+end:])
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil, fmt.Errorf("list %q: want a comma between strings", s)
		}
		rest = strings.TrimSpace(rest[1:])
	}
	return out, nil
}

func parseVNI(s string) (intent.VNI, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	if err != nil || n == 0 || n > uint64(intent.MaxVNI) {
		return 0, fmt.Errorf("VNI %q: want a number 1..%d", s, intent.MaxVNI)
	}
	return intent.VNI(n), nil
}

func parseASN(s string) (uint32, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("AS %q: want a number 1..4294967295", s)
	}
	return uint32(n), nil
}
