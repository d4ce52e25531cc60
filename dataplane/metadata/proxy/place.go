package proxy

import (
	"fmt"
	"strings"
)

// longestValue is that of a file's name.
const longestValue = 255

// place tells why a value cannot stand in a path: it has to be one part of it, whatever a
// server or a file system makes of parts, and lead nowhere else. The owner of a port may write
// some of them.
func place(placeholder, value string) error {
	switch {
	case value == "":
		return fmt.Errorf("{%s} is empty for this port", placeholder)
	case len(value) > longestValue:
		return fmt.Errorf("{%s} of this port has more than %d characters", placeholder, longestValue)
	case strings.Trim(value, ".") == "":
		return fmt.Errorf("{%s} of this port has no character but dots", placeholder)
	case strings.ContainsFunc(value, func(c rune) bool { return !plain(c) }):
		return fmt.Errorf("{%s} of this port has characters other than letters, digits and - . _ ~ :", placeholder)
	}
	return nil
}

// plain are the characters that RFC 3986 leaves alone (section 2.3), and the one that addresses
// of IPv6 have.
func plain(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.ContainsRune("-._~:", c)
}
