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

func named(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}
