package settings

import (
	"github.com/ovn-sluice/sluice/controlplane/metadata"
	"github.com/ovn-sluice/sluice/controlplane/tapbalancing"
	"github.com/ovn-sluice/sluice/pkg/config"
)

// Clients is the part of the configuration of balancing on taps.
func Clients(c config.LoadBalancing) tapbalancing.Config {
	return tapbalancing.Config{TrustUnknown: c.ACLUnknown == config.BalancedByEBPF}
}

// Metadata is the part of the configuration of metadata on taps.
func Metadata(c config.Metadata) metadata.Config {
	out := metadata.Config{Answer: c.Answer, Respect: c.SecurityGroups == config.SecurityGroupsRespect, PublishNetworks: c.PublishNetworks == config.SwitchOn}
	switch c.Path {
	case config.MetadataEBPF:
		out.Path = metadata.PathEBPF
	case config.MetadataNamespace:
		out.Path = metadata.PathNamespace
	}
	return out
}
