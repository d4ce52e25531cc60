package config

import (
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Metadata is 169.254.169.254 and fe80::a9fe:a9fe for the VMs of this node.
type Metadata struct {
	// Enabled is whether metadata is served. false, like backend none: no metadata program on any
	// tap, no proxy, no namespace.
	Enabled bool `yaml:"enabled"`
	// Backend is what answers. nova: Nova's metadata API. files: a directory with the documents of
	// each instance. template: any HTTP server by a URL. none: nothing; metadata is left to another
	// agent.
	Backend Backend `yaml:"backend"`
	// Path is how requests reach the proxy. auto: eBPF steers them from the VM's tap; where a port
	// has no tap that can be steered, they pass a namespace of its network. ebpf: from the tap
	// only. namespace: through the namespace only, as with neutron-ovn-metadata-agent.
	Path MetadataPath `yaml:"path"`
	// SecurityGroups is whether ACLs apply. bypass: metadata is reachable whatever security groups
	// say. respect: only requests that the ACLs of a port allow are steered. It needs ovn.nb; a
	// port whose ACLs are unknown, or not understood, is left to OVN.
	SecurityGroups SecurityGroups `yaml:"securityGroups"`
	// PublishNetworks writes the networks whose requests are answered into
	// Chassis.external_ids:neutron-metadata-proxy-networks, which Neutron read until 2019. on or
	// off.
	PublishNetworks Switch `yaml:"publishNetworks"`
	// StaleAfter is how long after the proxy's last heartbeat requests are left to OVN, where an
	// ovnmeta namespace may answer. Until then, without a proxy, the packets that open a connection
	// are dropped, and the VM tries again.
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
	// Socket is where the proxy answers sluicectl.
	Socket string `yaml:"socket"`
	// Listen is ADDRESS:PORT of the proxy's /metrics, /livez and /readyz, with the TLS and
	// authentication of http.webConfig. Empty: none.
	Listen string `yaml:"listen"`
}

// Nova is where Nova's metadata API is. In brackets the name of neutron's option.
type Nova struct {
	// Hosts are addresses or names without a port (nova_metadata_host). Requests go to them in
	// turn; where a host takes no connection, the next one is asked.
	Hosts []string `yaml:"hosts"`
	// Port is the port of Nova's metadata API (nova_metadata_port).
	Port uint16 `yaml:"port"`
	// Protocol is http or https (nova_metadata_protocol).
	Protocol Protocol `yaml:"protocol"`
	// Insecure leaves the server's certificate unchecked (nova_metadata_insecure).
	Insecure bool `yaml:"insecure"`
	// CACert is the file of the server's authority (auth_ca_cert). Empty: the system's.
	CACert string `yaml:"caCert"`
	// ClientCert is the file of the client certificate (nova_client_cert).
	ClientCert string `yaml:"clientCert"`
	// ClientKey is the file of its key (nova_client_priv_key). Give both, or neither.
	ClientKey string `yaml:"clientKey"`
	// SecretFile is the file whose first line is the secret shared with Nova (the value of
	// metadata_proxy_shared_secret). It is read again when it has changed. Empty: no secret; anyone
	// who reaches Nova's metadata API can then read any VM's metadata.
	SecretFile string `yaml:"secretFile"`
	// ConnectTimeout bounds the connection to a host.
	ConnectTimeout configfile.Duration `yaml:"connectTimeout"`
	// Timeout bounds the whole answer: Nova may ask others first.
	Timeout configfile.Duration `yaml:"timeout"`
}

// MetadataLimits are the limits of one port.
type MetadataLimits struct {
	// Connections is the number of connections at once.
	Connections uint32 `yaml:"connections"`
	// Rate is the number of requests a second in the long run. 0: no limit. A boot sends about 30.
	Rate uint32 `yaml:"rate"`
	// Burst is the number of requests at once.
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
