package metadata

import (
	"github.com/ovn-sluice/sluice/controlplane/ovn"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Path is how requests are to get to the proxy.
type Path uint8

// The paths: from the tap, or from a namespace where there is none that can be steered;
// from the tap alone; always from the namespace.
const (
	PathAuto Path = iota
	PathEBPF
	PathNamespace
)

// Config is the part of the node's configuration that the translation reads.
type Config struct {
	Path Path
	// Answer is the MAC address of the metadata addresses on networks without a metadata
	// port.
	Answer intent.MAC
	// Respect: a port is steered only if its ACLs let it ask.
	Respect bool
	// PublishNetworks: the networks that are served are told (ovn.MetadataAgent.Networks).
	PublishNetworks bool
}

// Needs adds to what other features need of OVN's rows.
func (c Config) Needs(n ovn.Needs) ovn.Needs {
	n.VMs, n.Metadata, n.ACLs = true, true, n.ACLs || c.Respect
	return n
}
