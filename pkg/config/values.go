package config

import "github.com/ovn-sluice/sluice/pkg/configfile"

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

// UnmarshalText reads a role.
func (r *Role) UnmarshalText(b []byte) error {
	return configfile.OneOf(r, b, RoleAuto, RoleGateway, RoleNone)
}

// UnmarshalText reads a path.
func (p *Path) UnmarshalText(b []byte) error {
	return configfile.OneOf(p, b, PathAuto, PathEBPF, PathKernel)
}

// UnmarshalText reads on or off.
func (s *Switch) UnmarshalText(b []byte) error { return configfile.OneOf(s, b, SwitchOn, SwitchOff) }

// UnmarshalText reads a treatment.
func (d *DF) UnmarshalText(b []byte) error { return configfile.OneOf(d, b, DFAuto, DFSet, DFClear) }

// UnmarshalText reads a treatment.
func (c *Checksum) UnmarshalText(b []byte) error {
	return configfile.OneOf(c, b, ChecksumAuto, ChecksumOn, ChecksumOff)
}

// UnmarshalText reads a kind.
func (a *Announce) UnmarshalText(b []byte) error {
	return configfile.OneOf(a, b, AnnounceHosts, AnnounceSubnets, AnnounceBoth)
}

// UnmarshalText reads refuse or announce.
func (n *NAT) UnmarshalText(b []byte) error { return configfile.OneOf(n, b, NATRefuse, NATAnnounce) }

// UnmarshalText reads announce or hold.
func (n *NATUnknown) UnmarshalText(b []byte) error {
	return configfile.OneOf(n, b, NATUnknownAnnounce, NATUnknownHold)
}

// UnmarshalText reads on or off.
func (s *Standby) UnmarshalText(b []byte) error { return configfile.OneOf(s, b, StandbyOn, StandbyOff) }

// UnmarshalText reads the backend of metadata.
func (b *Backend) UnmarshalText(t []byte) error {
	return configfile.OneOf(b, t, BackendNone, BackendNova, BackendFiles, BackendTemplate)
}

// UnmarshalText reads the path of metadata requests.
func (p *MetadataPath) UnmarshalText(b []byte) error {
	return configfile.OneOf(p, b, MetadataAuto, MetadataEBPF, MetadataNamespace)
}

// UnmarshalText reads the choice for security groups.
func (s *SecurityGroups) UnmarshalText(b []byte) error {
	return configfile.OneOf(s, b, SecurityGroupsBypass, SecurityGroupsRespect)
}

// UnmarshalText reads the choice for VMs whose ACLs are not known.
func (u *ACLUnknown) UnmarshalText(b []byte) error {
	return configfile.OneOf(u, b, BalancedByOVN, BalancedByEBPF)
}

// UnmarshalText reads the protocol of Nova.
func (p *Protocol) UnmarshalText(b []byte) error {
	return configfile.OneOf(p, b, ProtocolHTTP, ProtocolHTTPS)
}
