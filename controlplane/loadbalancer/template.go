package loadbalancer

import (
	"fmt"
	"strings"
)

// expand replaces ^NAME by the variable of that name, once: what a variable has is not
// looked at again. A name is of letters, digits and underscores.
func expand(text string, variables map[string]string) (string, error) {
	before, rest, found := strings.Cut(text, "^")
	var out strings.Builder
	for ; found; before, rest, found = strings.Cut(rest, "^") {
		out.WriteString(before)
		end := strings.IndexFunc(rest, func(r rune) bool { return !named(r) })
		if end < 0 {
			end = len(rest)
		}
		value, ok := variables[rest[:end]]
		if !ok {
			return "", fmt.Errorf("%q: this chassis has no variable %q (Chassis_Template_Var)", text, rest[:end])
		}
		out.WriteString(value)
		rest = rest[end:]
	}
	return out.String() + before, nil
}

// expandVIP is expand of a VIP. The variable of an address of IPv6 has no brackets, since OVN
// puts it into the matches of its flows as it is: with a port they are added.
func expandVIP(text string, six bool, variables map[string]string) (string, error) {
	last := strings.LastIndex(text, ":")
	if !six || last < 0 || !strings.HasPrefix(text, "^") {
		return expand(text, variables)
	}
	host, err := expand(text[:last], variables)
	if err != nil {
		return "", err
	}
	port, err := expand(text[last+1:], variables)
	if !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	return host + ":" + port, err
}

func named(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
