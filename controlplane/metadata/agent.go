package metadata

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"strings"
)

// chassisNamespace is what Neutron makes identifiers from chassis names in that are none.
var chassisNamespace = [16]byte{0xd3, 0x4b, 0xf9, 0xf6, 0xda, 0x32, 0x48, 0x71, 0x9a, 0xf8, 0x15, 0xa4, 0x62, 0x6b, 0x41, 0xab}

// AgentID is the identifier that Neutron's metadata agent has on a chassis.
func AgentID(systemID string) string {
	chassis, ok := parseUUID(systemID)
	if !ok {
		chassis = uuid5(chassisNamespace, systemID)
	}
	id := uuid5(chassis, "metadata_agent")
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// uuid5 is the name-based UUID of RFC 4122 section 4.3 with SHA-1.
func uuid5(namespace [16]byte, name string) (out [16]byte) {
	sum := sha1.Sum(append(namespace[:], name...))
	copy(out[:], sum[:])
	out[6] = out[6]&0x0f | 0x50
	out[8] = out[8]&0x3f | 0x80
	return out
}

// parseUUID takes the forms that Python's uuid.UUID takes: with or without hyphens,
// braces and urn:uuid:.
func parseUUID(s string) ([16]byte, bool) {
	s = strings.NewReplacer("urn:", "", "uuid:", "").Replace(s)
	b, err := hex.DecodeString(strings.ReplaceAll(strings.Trim(s, "{}"), "-", ""))
	if err != nil || len(b) != 16 {
		return [16]byte{}, false
	}
	return [16]byte(b), true
}
