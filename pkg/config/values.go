package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Role is what a node does.
type Role string

// The roles.
const (
	RoleAuto    Role = "auto"
	RoleGateway Role = "gateway"
	RoleNone    Role = "none"
)

// Path is what carries a VRF.
type Path string

// The paths.
const (
	PathAuto   Path = "auto"
	PathEBPF   Path = "ebpf"
	PathKernel Path = "kernel"
)

// Switch is on or off.
type Switch string

// The two.
const (
	SwitchOn  Switch = "on"
	SwitchOff Switch = "off"
)

// DF is the treatment of the outer don't-fragment bit.
type DF string

// The treatments.
const (
	DFAuto  DF = "auto"
	DFSet   DF = "set"
	DFClear DF = "clear"
)

// Checksum is the treatment of the outer UDP checksum.
type Checksum string

// The treatments.
const (
	ChecksumAuto Checksum = "auto"
	ChecksumOn   Checksum = "on"
	ChecksumOff  Checksum = "off"
)

// Announce is the kind of routes that exposed objects are announced as.
type Announce string

// The kinds.
const (
	AnnounceHosts   Announce = "hosts"
	AnnounceSubnets Announce = "subnets"
	AnnounceBoth    Announce = "both"
)

// NAT is what happens with objects behind OVN's source NAT.
type NAT string

// The values of NAT.
const (
	NATRefuse   NAT = "refuse"
	NATAnnounce NAT = "announce"
)

// NATUnknown is what happens while NAT is unknown.
type NATUnknown string

// The choices.
const (
	NATUnknownAnnounce NATUnknown = "announce"
	NATUnknownHold     NATUnknown = "hold"
)

// Standby is whether a node prepares for gateway ports that may come.
type Standby string

// The choices.
const (
	StandbyOn  Standby = "on"
	StandbyOff Standby = "off"
)

// LogLevel names a level of log/slog.
type LogLevel string

// The levels.
const (
	LogDebug LogLevel = "debug"
	LogInfo  LogLevel = "info"
	LogWarn  LogLevel = "warn"
	LogError LogLevel = "error"
)

// Level is the level as log/slog knows it.
func (l LogLevel) Level() slog.Level {
	var out slog.Level
	if out.UnmarshalText([]byte(l)) != nil {
		return slog.LevelInfo
	}
	return out
}

// LogFormat is the form of the log.
type LogFormat string

// The forms.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

func oneOf[T ~string](p *T, b []byte, allowed ...T) error {
	if slices.Contains(allowed, T(b)) {
		*p = T(b)
		return nil
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return fmt.Errorf("%q is not allowed; use %s", b, strings.Join(words, ", "))
}

// UnmarshalText reads a role.
func (r *Role) UnmarshalText(b []byte) error { return oneOf(r, b, RoleAuto, RoleGateway, RoleNone) }

// UnmarshalText reads a path.
func (p *Path) UnmarshalText(b []byte) error { return oneOf(p, b, PathAuto, PathEBPF, PathKernel) }

// UnmarshalText reads on or off.
func (s *Switch) UnmarshalText(b []byte) error { return oneOf(s, b, SwitchOn, SwitchOff) }

// UnmarshalText reads a treatment.
func (d *DF) UnmarshalText(b []byte) error { return oneOf(d, b, DFAuto, DFSet, DFClear) }

// UnmarshalText reads a treatment.
func (c *Checksum) UnmarshalText(b []byte) error {
	return oneOf(c, b, ChecksumAuto, ChecksumOn, ChecksumOff)
}

// UnmarshalText reads a kind.
func (a *Announce) UnmarshalText(b []byte) error {
	return oneOf(a, b, AnnounceHosts, AnnounceSubnets, AnnounceBoth)
}

// UnmarshalText reads refuse or announce.
func (n *NAT) UnmarshalText(b []byte) error { return oneOf(n, b, NATRefuse, NATAnnounce) }

// UnmarshalText reads announce or hold.
func (n *NATUnknown) UnmarshalText(b []byte) error {
	return oneOf(n, b, NATUnknownAnnounce, NATUnknownHold)
}

// UnmarshalText reads on or off.
func (s *Standby) UnmarshalText(b []byte) error { return oneOf(s, b, StandbyOn, StandbyOff) }

// UnmarshalText reads a level.
func (l *LogLevel) UnmarshalText(b []byte) error {
	return oneOf(l, b, LogDebug, LogInfo, LogWarn, LogError)
}

// UnmarshalText reads a form.
func (f *LogFormat) UnmarshalText(b []byte) error { return oneOf(f, b, LogText, LogJSON) }

// Duration is a time span, written as 90s, 1m30s or 500ms.
type Duration struct{ time.Duration }

// Seconds makes a Duration.
func Seconds(n int) Duration { return Duration{time.Duration(n) * time.Second} }

// MarshalText writes the form that UnmarshalText reads.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads a span; it is never negative.
func (d *Duration) UnmarshalText(b []byte) error {
	v, err := time.ParseDuration(string(b))
	if err != nil {
		return fmt.Errorf("%q is not a duration; write a number with a unit, such as 90s", b)
	}
	if v < 0 {
		return fmt.Errorf("%q is negative; use 0s or more", b)
	}
	d.Duration = v
	return nil
}

const redacted = "[redacted]"

// Secret is a string that prints as "[redacted]".
type Secret struct{ value string }

// Reveal is the value itself.
func (s Secret) Reveal() string { return s.value }

// IsZero tells whether there is none.
func (s Secret) IsZero() bool { return s.value == "" }

// String hides the value.
func (s Secret) String() string {
	if s.value == "" {
		return ""
	}
	return redacted
}

// GoString hides the value.
func (s Secret) GoString() string { return s.String() }

// MarshalText hides the value.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the value.
func (s *Secret) UnmarshalText(b []byte) error { s.value = string(b); return nil }

// UnmarshalText reads the backend of metadata.
func (b *Backend) UnmarshalText(t []byte) error {
	return oneOf(b, t, BackendNone, BackendNova, BackendFiles, BackendTemplate)
}

// UnmarshalText reads the path of metadata requests.
func (p *MetadataPath) UnmarshalText(b []byte) error {
	return oneOf(p, b, MetadataAuto, MetadataEBPF, MetadataNamespace)
}

// UnmarshalText reads the choice for security groups.
func (s *SecurityGroups) UnmarshalText(b []byte) error {
	return oneOf(s, b, SecurityGroupsBypass, SecurityGroupsRespect)
}

// UnmarshalText reads the choice for machines whose ACLs are not known.
func (u *ACLUnknown) UnmarshalText(b []byte) error { return oneOf(u, b, BalancedByOVN, BalancedByEBPF) }

// UnmarshalText reads the protocol of Nova.
func (p *Protocol) UnmarshalText(b []byte) error { return oneOf(p, b, ProtocolHTTP, ProtocolHTTPS) }
