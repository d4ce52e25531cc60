package config

import (
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

// Default is the configuration of an empty file.
func Default() *Config {
	return &Config{
		Roles: RoleAuto,
		Path:  PathAuto,
		OVN: OVN{
			VSwitch:         "unix:/run/openvswitch/db.sock",
			InactivityProbe: configfile.Seconds(5),
		},
		BGP: BGP{
			GracefulRestart: GracefulRestart{Enabled: true, Time: configfile.Seconds(120)},
			LongLived:       LongLived{Time: configfile.Seconds(3600)},
			PeerLinger:      configfile.Seconds(30),
			VTEPLinger:      configfile.Seconds(30),
			ConnectRetry:    configfile.Seconds(5),
		},
		Fabric: Fabric{
			Port:        4789,
			DF:          DFAuto,
			UDPChecksum: ChecksumAuto,
			NextHopMAC:  DefaultNextHopMAC,

			ResolveViaDefault: true,
		},
		Underlay: Underlay{Install: Install{
			Metric: lastResort, Accept: []PrefixMatch{{Prefix: anyIPv4}, {Prefix: anyIPv6}, {Prefix: anyIPv4, GE: 32}, {Prefix: anyIPv6, GE: 128}},
		}},
		EVPN: EVPN{
			Announce:       AnnounceBoth,
			NAT:            NATRefuse,
			NATUnknown:     NATUnknownAnnounce,
			DynamicRouting: SwitchOff,
			LearnedRoutes:  SwitchOff,
			Standby:        StandbyOn,
			MaxVRFs:        4096,
		},
		Exposure:      Exposure{Ports: SwitchOff, FloatingIPs: SwitchOff, Gateways: SwitchOff},
		Metadata:      defaultMetadata(),
		LoadBalancing: LoadBalancing{Clients: true, NewSessionRate: 20000, BackendMetrics: true, ACLUnknown: BalancedByOVN},
		Dataplane: Dataplane{
			BPFFS: "/sys/fs/bpf/sluice",
			Sizes: Sizes{
				VRFs:           4096,
				Gateways:       8192,
				Served:         65536,
				Hosts:          1_000_000,
				Prefixes:       250_000,
				NextHops:       65536,
				VTEPs:          16384,
				VIPs:           16384,
				Backends:       65535,
				SessionEntries: 131072,
			},
		},
		OVS:      OVS{RunDir: "/run/openvswitch"},
		Log:      logging.Config{Level: logging.LevelInfo, Format: logging.FormatText},
		HTTP:     HTTP{Listen: "127.0.0.1:9476"},
		Admin:    Admin{Socket: "/run/sluice/sluiced.sock"},
		StateDir: "/var/lib/sluice",
	}
}
