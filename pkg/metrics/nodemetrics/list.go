package nodemetrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ovn-sluice/sluice/pkg/metrics"
)

// The lists: of both processes, of sluiced, of the metadata proxy, and of sluiced again, in the
// order of the reference.
var both, daemon, proxy, databases metrics.List

// List is every metric of a node, in the order of declaration.
func List() metrics.List { return metrics.Declared(both, daemon, proxy, databases) }

var components = both.Status("the daemon (sb, nb, vswitchd, chassis-private, role, standby, dataplane, fabric, flows, bgp, announcements, clients, metadata, drain; of the metadata proxy identities, listeners, heartbeat, metadata-proxy)")

var (
	vrfPackets = daemon.Counter("sluice_vrf_packets_total", "Packets forwarded for a VRF; direction is to-fabric or from-fabric.", "vni", "direction")
	vrfBytes   = daemon.Counter("sluice_vrf_bytes_total", "Bytes of inner IP packets forwarded for a VRF; direction is to-fabric or from-fabric.", "vni", "direction")
	vrfPaths   = daemon.Gauge("sluice_vrfs", "VRFs of this node by the path of their packets, ebpf or kernel, and the reason for the path.", "path", "reason")
	vrfImports = daemon.Gauge("sluice_vrf_import_prefixes", "Received prefixes that carry a route target of a VRF; set is imported, filtered (denied by its import filter) or waiting (the VRF has its maximum).", "vni", "set")
	vrfRefused = daemon.Counter("sluice_vrf_import_refused_total", "Prefixes that a VRF refused, by reason: filtered or max-prefixes.", "vni", "reason")

	vmPaths = daemon.Gauge("sluice_vip_vms", "VMs of this node on switches with VIPs, by path of their new sessions, ebpf (on their taps) or ovn, and the reason.", "path", "reason")

	vipPackets      = daemon.Counter("sluice_vip_packets_total", "Packets of sessions of a VIP that eBPF balances; direction is to-backends or to-clients.", "vni", "vip", "protocol", "direction")
	vipBytes        = daemon.Counter("sluice_vip_bytes_total", "Bytes of IP packets of sessions of a VIP that eBPF balances; direction is to-backends or to-clients.", "vni", "vip", "protocol", "direction")
	vipSessions     = daemon.Counter("sluice_vip_sessions_total", "New sessions of a VIP that got an entry.", "vni", "vip", "protocol")
	vipOpen         = daemon.Gauge("sluice_vip_open_sessions", "Sessions of a VIP on this node that have not ended.", "vni", "vip", "protocol")
	vipTable        = daemon.Gauge("sluice_vip_table_hash", "53 bits of the hash of a VIP's Maglev table: nodes with equal values choose equal backends. 0: the VIP has no backend, or OVN balances it.", "vni", "vip", "protocol")
	vipSteps        = daemon.Counter("sluice_vip_table_steps_total", "How often the Maglev table of a VIP got another size since the start, by options or the number of its backends: packets without a session then use another table.")
	vipUnrecorded   = daemon.Counter("sluice_vip_unrecorded_packets_total", "Packets to a VIP of sessions above loadBalancing.newSessionRate, which got no entry. Their hash chose the backend.", "vni", "vip", "protocol")
	evicting        = daemon.Gauge("sluice_sessions_evicting", "1 while the map sessions or flows of the table is full, or was within two minutes, else 0. Sessions of open connections are evicted then. Raise dataplane.sizes.sessionEntries.", "table")
	evictedAnswers  = daemon.Counter("sluice_evicted_answers_total", "Packets of backends without a session, during an eviction and two hours after, whose VIP the Maglev tables identified. Other such packets are dropped as session_evicted.", "table")
	vipDrops        = daemon.Counter("sluice_vip_dropped_packets_total", "Packets to a VIP that were dropped because it had no backend.", "vni", "vip", "protocol")
	backendPackets  = daemon.Counter("sluice_backend_packets_total", "Packets of sessions of VIPs to or from a backend; direction is to-backends or to-clients. With loadBalancing.backendMetrics.", "vni", "backend", "protocol", "direction")
	backendBytes    = daemon.Counter("sluice_backend_bytes_total", "Bytes of IP packets of sessions of VIPs to or from a backend; direction is to-backends or to-clients. With loadBalancing.backendMetrics.", "vni", "backend", "protocol", "direction")
	backendSessions = daemon.Counter("sluice_backend_sessions_total", "New sessions of VIPs with a backend that got an entry. With loadBalancing.backendMetrics.", "vni", "backend", "protocol")

	drops       = daemon.Counter("sluice_dropped_packets_total", "Packets that the data plane dropped, by reason.", "reason")
	deviceDrops = daemon.Counter("sluice_device_dropped_packets_total", "Packets that the kernel did not deliver on a device of the path to the fabric, as `ip -s link` counts them: sluice-vxlan, sluice<N>, and the underlay devices of packets to VTEPs. kind is errors, dropped or missed; rx errors of sluice-vxlan are packets with a malformed VXLAN header, or with header bits that the kernel does not support.", "device", "direction", "kind")
	pathMTU     = daemon.Gauge("sluice_vtep_path_mtu_bytes", "Largest outer packet to a VTEP whose path MTU is below the underlay's MTU.", "vtep")
	unreadable  = daemon.Counter("sluice_unreadable_samples_total", "Sampled drops in an unknown format since the node's start. This version skips them.")

	tableRows     = daemon.Gauge("sluice_table_rows", "Rows of a table; set is wanted, actual, failed, or lingering: wanted rows that no source asks for, and that sessions may still need.", "table", "set")
	tableHeld     = daemon.Gauge("sluice_table_held", "1 while unwanted rows of a table are held, because a source of the table is not in sync or the table cannot be read back, else 0.", "table")
	tableOps      = daemon.Counter("sluice_table_operations_total", "Rows applied or deleted in a table; result is ok or error.", "table", "operation", "result")
	mapRows       = daemon.Gauge("sluice_map_rows", "Used rows of a map of the data plane; table is the map's table.", "map", "table")
	mapSize       = daemon.Gauge("sluice_map_size_rows", "Capacity of a map of the data plane in rows, as dataplane.sizes sets it. The setting served sizes each of the maps served and known.", "map", "table")
	passSeconds   = daemon.Histogram("sluice_reconcile_pass_seconds", "Duration of a pass of the reconciler over the tables that changed.", prometheus.ExponentialBuckets(0.0001, 4, 9))
	announceDelay = daemon.Histogram("sluice_announce_delay_seconds", "Time from the arrival of a change in OVN's Southbound database to the handover of its announcement to BGP.", prometheus.ExponentialBuckets(0.001, 2, 14))

	drainStage = daemon.Gauge("sluice_drain_stage", "1 for the current stage of this node's drain (serving, graceful-shutdown, withdrawn, drained), 0 for the others.", "stage")

	bgpUp       = daemon.Gauge("sluice_bgp_neighbor_up", "1 when the session with a BGP neighbour is established, else 0.", "neighbor", "asn")
	bgpFlaps    = daemon.Counter("sluice_bgp_neighbor_flaps_total", "How often an established session with a BGP neighbour was lost since the start. The log line \"BGP session lost\" has the reason of each.", "neighbor", "asn")
	bgpSince    = daemon.Gauge("sluice_bgp_neighbor_established_timestamp_seconds", "When the session with a BGP neighbour was established, in Unix time; absent while it is not.", "neighbor", "asn")
	bgpLimited  = daemon.Gauge("sluice_bgp_neighbor_prefix_limit", "1 while the session with a BGP neighbour is down because the neighbour sent more routes than its maxPrefixes, else 0.", "neighbor", "asn")
	bgpIgnored  = daemon.Gauge("sluice_bgp_neighbor_ignored_updates", "UPDATE messages of a BGP neighbour's session with unreadable routes, which were ignored.", "neighbor")
	bgpRoutes   = daemon.Gauge("sluice_bgp_neighbor_routes", "Type-5 routes of a BGP neighbour; set is received, accepted or sent.", "neighbor", "set")
	bgpUnicast  = daemon.Gauge("sluice_bgp_neighbor_unicast_routes", "Plain unicast routes received from a BGP neighbour.", "neighbor")
	bgpRefused  = daemon.Gauge("sluice_bgp_neighbor_rejected_routes", "Routes held from a BGP neighbour that are not used, of Type 5 and of plain unicast, by reason.", "neighbor", "reason")
	bgpRejected = daemon.Counter("sluice_bgp_rejected_routes_total", "Routes from neighbours that were not accepted, by reason.", "reason")

	underlayRoutes  = daemon.Gauge("sluice_underlay_routes", "Routes of the underlay in the node's main table; set is installed, or hops for their next hops.", "set")
	underlayRefused = daemon.Gauge("sluice_underlay_refused_routes", "Learned unicast routes that are not installed, by reason.", "reason")

	bfdUp      = daemon.Gauge("sluice_bfd_session_up", "1 when BFD says that the path to a BGP neighbour is up, else 0.", "neighbor")
	bfdFlaps   = daemon.Counter("sluice_bfd_flaps_total", "How often the path to a BGP neighbour was lost, or its BFD switched off, since the node's start.", "neighbor")
	bfdPackets = daemon.Counter("sluice_bfd_packets_total", "BFD packets of a BGP neighbour since the node's start; direction is in (used packets) or out.", "neighbor", "direction")
	bfdDrops   = daemon.Counter("sluice_bfd_dropped_packets_total", "Unused BFD packets received since the node's start, by reason: version, length, multiplier, multipoint, discriminator, unknown-session, source, ttl, authentication or admin-down.", "reason")

	metadataPackets     = daemon.Counter("sluice_metadata_packets_total", "Metadata packets on taps and from the proxy back to them, since the maps were created, by outcome; `bpftool map dump` of steered_v1 has the same names.", "outcome")
	metadataRequests    = proxy.Counter("sluice_metadata_requests_total", "Requests to the metadata proxy, by outcome: answered, unattributed, rate-limited, too-many-connections, malformed, too-large, slow, refused, forbidden, unreachable, timed-out or broken.", "outcome")
	metadataSeconds     = proxy.Histogram("sluice_metadata_request_seconds", "Time from the end of a metadata request's header to the end of its answer.", prometheus.ExponentialBuckets(0.001, 2.5, 13))
	metadataConnections = proxy.Gauge("sluice_metadata_connections", "Open connections of VMs to the metadata proxy.")
	metadataListeners   = proxy.Gauge("sluice_metadata_listeners", "Addresses of the metadata proxy's listeners; state is serving, or waiting while not open.", "state")
	metadataKnown       = proxy.Gauge("sluice_metadata_identities", "Entries of the metadata proxy's identities file: ports that are steered, and networks that are served in namespaces.", "kind")
	metadataFileErrors  = proxy.Counter("sluice_metadata_file_errors_total", "How often the metadata proxy's identities file became unreadable. The last good one stays in use.")
	metadataHeartbeat   = proxy.Gauge("sluice_metadata_heartbeat_age_seconds", "Time since the metadata proxy's last heartbeat to the programs on taps; absent before the first one, and where nothing is steered.")

	dbConnected  = databases.Gauge("sluice_ovsdb_connected", "1 when there is a session with a database (sb, nb, vswitchd), else 0.", "database")
	dbInSync     = databases.Gauge("sluice_ovsdb_in_sync", "1 when the local copy of a database holds all rows that the node needs, else 0.", "database")
	dbRows       = databases.Gauge("sluice_ovsdb_rows", "Rows in the local copy of a database.", "database")
	dbReconnects = databases.Counter("sluice_ovsdb_sessions_total", "Sessions opened with a database since the start.", "database")
)
