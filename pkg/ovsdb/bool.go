package ovsdb

import "strings"

// Bool tells whether a key of a column with options is true, in any case of its letters,
// as OVS and OVN read it (smap_get_bool of OVS's lib/smap.c); false is what is not there.
func Bool(options map[string]string, key string) bool { return strings.EqualFold(options[key], "true") }
