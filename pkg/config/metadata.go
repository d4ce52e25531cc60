package config

import (
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Metadata is 169.254.169.254 and fe80::a9fe:a9fe for the VMs of this node.
type Metadata struct {
	// Enabled false: no program on any tap for metadata, no proxy, no namespace. So it
	// is, too, as long as backend is none.
	Enabled bool `yaml:"enabled"`
	// Backend is who answers: nova, Nova's metadata API; files, a directory with the
	// documents of each instance; template, any HTTP server by a URL; none: nobody, and
	// metadata is left to whoever else does it.
	Backend Backend `yaml:"backend"`
	// Path is how requests get to the proxy. auto: steered from the VM's tap by eBPF,
	// and through a namespace of its network where a port has no tap that can be steered.
	// ebpf: from the tap or not at all. namespace: always through the namespace, as
	// neutron-ovn-metadata-agent does it.
	Path MetadataPath `yaml:"path"`
	// SecurityGroups bypass: metadata is reachable whatever security groups say. respect:
	// a port is steered only if its ACLs let it ask, which takes ovn.nb; where they are
	// not known, or not understood, it is left to OVN.
	SecurityGroups SecurityGroups `yaml:"securityGroups"`
	// PublishNetworks writes Chassis.external_ids:neutron-metadata-proxy-networks, which
	// Neutron read until 2019: the networks whose requests are answered. on or off.
	PublishNetworks Switch `yaml:"publishNetworks"`
	// StaleAfter is how long after the proxy's last heartbeat requests are left to OVN,
	// where an ovnmeta namespace may answer. Until then the packets that open a
	// connection are dropped if the proxy is gone, so that the guest tries again.
	StaleAfter configfile.Duration `yaml:"staleAfter"`
	// Answer is the MAC address of the metadata addresses on networks that have no
	// metadata port in OVN.
	Answer intent.MAC `yaml:"answer"`
	// Nova is where Nova's metadata API is, with backend nova.
	Nova Nova `yaml:"nova"`
	// Files is the directory of backend files: DIRECTORY/INSTANCE/PATH. project_id of an
	// instance's meta_data.json has to be the project of the port that asks.
	Files string `yaml:"files"`
	// Template is the URL of backend template, in which {instance}, {project},
	// {network}, {port} and {address} are replaced; the request's path is appended. With
	// {instance} it needs {project}, unless ports have no project: see metadata.md.
	Template string `yaml:"template"`
	// Limits protect the proxy, and VMs from each other.
	Limits MetadataLimits `yaml:"limits"`
	// Socket is where the proxy answers sluicectl, and tells of itself.
	Socket string `yaml:"socket"`
	// Listen is ADDRESS:PORT of the proxy's /metrics, /livez and /readyz, with the TLS and
	// authentication of http.webConfig. Empty: none.
	Listen string `yaml:"listen"`
}

// Nova is where Nova's metadata API is. In brackets the name of neutron's option.
type Nova struct {
	// Hosts are addresses or names without a port (nova_metadata_host). They are asked in
	// turn, and the next where one takes no connection.
	Hosts []string `yaml:"hosts"`
	// Port is that of Nova's metadata API (nova_metadata_port).
	Port uint16 `yaml:"port"`
	// Protocol is how Nova is asked: http or https (nova_metadata_protocol).
	Protocol Protocol `yaml:"protocol"`
	// Insecure leaves the server's certificate unchecked (nova_metadata_insecure).
	Insecure bool `yaml:"insecure"`
	// CACert is the file of the server's authority (auth_ca_cert). Empty: the system's.
	CACert string `yaml:"caCert"`
	// ClientCert is the file of the certificate that Nova is shown (nova_client_cert).
	ClientCert string `yaml:"clientCert"`
	// ClientKey is the file of its key (nova_client_priv_key). Both are given, or neither.
	ClientKey string `yaml:"clientKey"`
	// SecretFile holds the secret that is shared with Nova (the value of
	// metadata_proxy_shared_secret), alone on its first line. It is read again when it
	// has changed. Empty: Nova has none, so whoever reaches it is told what any VM is.
	SecretFile string `yaml:"secretFile"`
	// ConnectTimeout bounds the connection to a host.
	ConnectTimeout configfile.Duration `yaml:"connectTimeout"`
	// Timeout bounds the whole answer: Nova may ask others first.
	Timeout configfile.Duration `yaml:"timeout"`
}

// MetadataLimits are those of one port.
type MetadataLimits struct {
	// Connections is how many it may have at once.
	Connections uint32 `yaml:"connections"`
	// Rate is how many requests a second it may make in the long run. 0: no limit. A boot
	// makes about 30.
	Rate uint32 `yaml:"rate"`
	// Burst is how many at once.
	Burst uint32 `yaml:"burst"`
}

// Used tells whether anything is to be done for metadata.
func (m Metadata) Used() bool { return m.Unused() == "" }

// Unused is the setting by which nothing is to be done for metadata; empty if there is none.
func (m Metadata) Unused() string {
	switch {
	case !m.Enabled:
		return "metadata.enabled is false"
	case m.Backend == BackendNone:
		return "metadata.backend is none"
	}
	return ""
}

// WithoutSecret tells whether Nova is asked without a shared secret.
func (m Metadata) WithoutSecret() bool {
	return m.Used() && m.Backend == BackendNova && m.Nova.SecretFile == ""
}

// files are those that are read for what is used.
func (m *Metadata) files() []namedFile {
	switch {
	case !m.Used():
		return nil
	case m.Backend == BackendFiles:
		return []namedFile{{"metadata.files", m.Files}}
	case m.Backend != BackendNova:
		return nil
	}
	n := &m.Nova
	return []namedFile{
		{"metadata.nova.secretFile", n.SecretFile}, {"metadata.nova.caCert", n.CACert},
		{"metadata.nova.clientCert", n.ClientCert}, {"metadata.nova.clientKey", n.ClientKey},
	}
}

// Backend is who answers metadata requests.
type Backend string

// The backends.
const (
	BackendNone     Backend = "none"
	BackendNova     Backend = "nova"
	BackendFiles    Backend = "files"
	BackendTemplate Backend = "template"
)

// MetadataPath is how metadata requests get to the proxy.
type MetadataPath string

// The paths.
const (
	MetadataAuto      MetadataPath = "auto"
	MetadataEBPF      MetadataPath = "ebpf"
	MetadataNamespace MetadataPath = "namespace"
)

// SecurityGroups is whether metadata is subject to security groups.
type SecurityGroups string

// The choices.
const (
	SecurityGroupsBypass  SecurityGroups = "bypass"
	SecurityGroupsRespect SecurityGroups = "respect"
)

// Protocol is how Nova is asked.
type Protocol string

// The protocols.
const (
	ProtocolHTTP  Protocol = "http"
	ProtocolHTTPS Protocol = "https"
)

// DefaultAnswer is the MAC address of the metadata addresses on networks without a
// metadata port.
var DefaultAnswer = intent.MAC{0x02, 0x53, 0x4c, 0x55, 0xa9, 0xfe}

func defaultMetadata() Metadata {
	return Metadata{
		Enabled: true, Backend: BackendNone, Path: MetadataAuto, SecurityGroups: SecurityGroupsBypass, PublishNetworks: SwitchOff,
		StaleAfter: configfile.Seconds(3), Answer: DefaultAnswer,
		Nova:   Nova{Port: 8775, Protocol: ProtocolHTTP, ConnectTimeout: configfile.Seconds(5), Timeout: configfile.Seconds(60)},
		Limits: MetadataLimits{Connections: 64, Rate: 0, Burst: 100},
		Socket: "/run/sluice/metadata.sock", Listen: "127.0.0.1:9477",
	}
}
