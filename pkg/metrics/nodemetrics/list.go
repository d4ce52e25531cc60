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
	vrfPaths   = daemon.Gauge("sluice_vrfs", "VRFs of this node by the path that carries their packets, ebpf or kernel, and the reason for which a path is chosen.", "path", "reason")
	vrfImports = daemon.Gauge("sluice_vrf_import_prefixes", "Received prefixes that carry a route target of a VRF; set is imported, filtered (denied by its import filter) or waiting (left out, since the VRF has its maximum).", "vni", "set")
	vrfRefused = daemon.Counter("sluice_vrf_import_refused_total", "Prefixes that a VRF did not take, by reason: filtered or max-prefixes.", "vni", "reason")

	vmPaths = daemon.Gauge("sluice_vip_vms", "VMs of this node on switches with VIPs, by what balances their new flows, ebpf (on their taps) or ovn, and the reason.", "path", "reason")

	vipPackets     = daemon.Counter("sluice_vip_packets_total", "Packets of flows to a VIP that eBPF serves; direction is to-backends or to-clients.", "vni", "vip", "protocol", "direction")
	vipBytes       = daemon.Counter("sluice_vip_bytes_total", "Bytes of IP packets of flows to a VIP that eBPF serves; direction is to-backends or to-clients.", "vni", "vip", "protocol", "direction")
	vipFlows       = daemon.Counter("sluice_vip_flows_total", "Flows to a VIP that were recorded.", "vni", "vip", "protocol")
	vipKnown       = daemon.Gauge("sluice_vip_known_flows", "Flows to a VIP that the node knows, without those that have ended.", "vni", "vip", "protocol")
	vipTable       = daemon.Gauge("sluice_vip_table_hash", "53 bits of the hash of a VIP's table: nodes whose values are equal lead all flows alike. 0: there is no backend, or the VIP is OVN's.", "vni", "vip", "protocol")
	vipSteps       = daemon.Counter("sluice_vip_table_steps_total", "How often the table of a VIP got another size since the start, by options or the number of its backends: flows that are not known go by another table then.")
	vipUnrecorded  = daemon.Counter("sluice_vip_unrecorded_packets_total", "Packets to a VIP of flows that were not recorded, since there were more new ones than loadBalancing.newFlowRate. They went where their hash leads.", "vni", "vip", "protocol")
	evicting       = daemon.Gauge("sluice_sessions_evicting", "1 while the map sessions or flows of the table is full, or was within two minutes: rows of connections that go on are evicted, else 0. Raise dataplane.sizes.flows.", "table")
	evictedAnswers = daemon.Counter("sluice_evicted_answers_total", "Packets of backends without a session, while sessions were evicted or within two hours after that, whose VIP the Maglev tables told. Those whose VIP they did not tell are dropped for session_evicted.", "table")
	vipDrops       = daemon.Counter("sluice_vip_dropped_packets_total", "Packets to a VIP that had no backend to go to.", "vni", "vip", "protocol")
	backendPackets = daemon.Counter("sluice_backend_packets_total", "Packets of flows to VIPs that went to or came from a backend; direction is to-backends or to-clients. With loadBalancing.backendMetrics.", "vni", "backend", "protocol", "direction")
	backendBytes   = daemon.Counter("sluice_backend_bytes_total", "Bytes of IP packets of flows to VIPs that went to or came from a backend; direction is to-backends or to-clients. With loadBalancing.backendMetrics.", "vni", "backend", "protocol", "direction")
	backendFlows   = daemon.Counter("sluice_backend_flows_total", "Flows to VIPs that began with a backend and were recorded. With loadBalancing.backendMetrics.", "vni", "backend", "protocol")

	drops       = daemon.Counter("sluice_dropped_packets_total", "Packets that the data plane dropped, by reason.", "reason")
	deviceDrops = daemon.Counter("sluice_device_dropped_packets_total", "Packets that the kernel did not deliver on a device of the node's way to the fabric, as `ip -s link` counts them: sluice-vxlan, sluice<N>, and the devices of the underlay that packets to VTEPs leave by. kind is errors, dropped or missed; of sluice-vxlan, rx errors are packets with a malformed VXLAN header, or one with bits that the kernel does not know.", "device", "direction", "kind")
	pathMTU     = daemon.Gauge("sluice_vtep_path_mtu_bytes", "Largest outer packet to a VTEP whose path takes less than the underlay's MTU.", "vtep")
	unreadable  = daemon.Counter("sluice_unreadable_samples_total", "Sampled drops that were passed over since the node's start: they were not of the form that this version knows.")

	tableRows     = daemon.Gauge("sluice_table_rows", "Rows of a table; set is wanted, actual, failed, or lingering for those of wanted that nobody asks for any more, and that flows may still need.", "table", "set")
	tableHeld     = daemon.Gauge("sluice_table_held", "1 while rows of a table that are not wanted any more are kept, since a source of it is not in sync or the table cannot be read back, else 0.", "table")
	tableOps      = daemon.Counter("sluice_table_operations_total", "Rows applied or deleted in a table; result is ok or error.", "table", "operation", "result")
	mapRows       = daemon.Gauge("sluice_map_rows", "Rows in use of a map of the data plane; table is the table that it belongs to.", "map", "table")
	mapSize       = daemon.Gauge("sluice_map_size_rows", "Most rows that a map of the data plane can hold, as dataplane.sizes sets it. The size served is that of each of the maps served and known.", "map", "table")
	passSeconds   = daemon.Histogram("sluice_reconcile_pass_seconds", "Duration of a pass of the reconciler over the tables that changed.", prometheus.ExponentialBuckets(0.0001, 4, 9))
	announceDelay = daemon.Histogram("sluice_announce_delay_seconds", "Time from a change in OVN's Southbound database arriving to its announcement handed to BGP.", prometheus.ExponentialBuckets(0.001, 2, 14))

	drainStage = daemon.Gauge("sluice_drain_stage", "1 for the stage that the drain of this node is at (serving, graceful-shutdown, withdrawn, drained), 0 for the others.", "stage")

	bgpUp       = daemon.Gauge("sluice_bgp_neighbor_up", "1 when the session with a BGP neighbour is established, else 0.", "neighbor", "asn")
	bgpFlaps    = daemon.Counter("sluice_bgp_neighbor_flaps_total", "How often an established session with a BGP neighbour was lost since the start. The log line \"BGP session lost\" has the reason of each.", "neighbor", "asn")
	bgpSince    = daemon.Gauge("sluice_bgp_neighbor_established_timestamp_seconds", "When the session with a BGP neighbour was established, in Unix time; absent while it is not.", "neighbor", "asn")
	bgpLimited  = daemon.Gauge("sluice_bgp_neighbor_prefix_limit", "1 while the session with a BGP neighbour is down since the neighbour sent more routes than its maxPrefixes, else 0.", "neighbor", "asn")
	bgpIgnored  = daemon.Gauge("sluice_bgp_neighbor_ignored_updates", "UPDATE messages of a BGP neighbour's session whose routes could not be read and were ignored.", "neighbor")
	bgpRoutes   = daemon.Gauge("sluice_bgp_neighbor_routes", "Type-5 routes of a BGP neighbour; set is received, accepted or sent.", "neighbor", "set")
	bgpUnicast  = daemon.Gauge("sluice_bgp_neighbor_unicast_routes", "Plain unicast routes received from a BGP neighbour.", "neighbor")
	bgpRejected = daemon.Counter("sluice_bgp_rejected_routes_total", "Routes from neighbours that were not accepted, by reason.", "reason")

	underlayRoutes  = daemon.Gauge("sluice_underlay_routes", "Routes of the fabric in the node's main table; set is installed, or hops for the next hops of these.", "set")
	underlayRefused = daemon.Gauge("sluice_underlay_refused_routes", "Learned unicast routes that are not installed, by reason.", "reason")

	bfdUp      = daemon.Gauge("sluice_bfd_session_up", "1 when BFD says that the path to a BGP neighbour is up, else 0.", "neighbor")
	bfdFlaps   = daemon.Counter("sluice_bfd_flaps_total", "How often the path to a BGP neighbour was lost, or its BFD switched off, since the node's start.", "neighbor")
	bfdPackets = daemon.Counter("sluice_bfd_packets_total", "BFD packets of a BGP neighbour since the node's start; direction is in, of those used, or out.", "neighbor", "direction")
	bfdDrops   = daemon.Counter("sluice_bfd_dropped_packets_total", "BFD packets received and not used since the node's start, by reason: version, length, multiplier, multipoint, discriminator, unknown-session, source, ttl, authentication or admin-down.", "reason")

	metadataPackets     = daemon.Counter("sluice_metadata_packets_total", "Packets of metadata on taps and on the way back from the proxy, since the maps were made, by what became of them; `bpftool map dump` of steered_v1 has the same names.", "outcome")
	metadataRequests    = proxy.Counter("sluice_metadata_requests_total", "Requests to the metadata proxy, by what became of them: answered, unattributed, rate-limited, too-many-connections, malformed, too-large, slow, refused, forbidden, unreachable, timed-out or broken.", "outcome")
	metadataSeconds     = proxy.Histogram("sluice_metadata_request_seconds", "Time from the end of a metadata request's header to the end of its answer.", prometheus.ExponentialBuckets(0.001, 2.5, 13))
	metadataConnections = proxy.Gauge("sluice_metadata_connections", "Open connections of VMs to the metadata proxy.")
	metadataListeners   = proxy.Gauge("sluice_metadata_listeners", "Addresses that the metadata proxy listens on, or is to; state is serving or waiting.", "state")
	metadataKnown       = proxy.Gauge("sluice_metadata_identities", "What the metadata proxy knows from its file: ports that are steered, and networks that are served in namespaces.", "kind")
	metadataFileErrors  = proxy.Counter("sluice_metadata_file_errors_total", "How often the metadata proxy's file of identities became unreadable. The last one that could be read stays in use.")
	metadataHeartbeat   = proxy.Gauge("sluice_metadata_heartbeat_age_seconds", "Time since the metadata proxy last told the programs on taps that it serves; absent before, and where nothing is steered.")

	dbConnected  = databases.Gauge("sluice_ovsdb_connected", "1 when there is a session with a database (sb, nb, vswitchd), else 0.", "database")
	dbInSync     = databases.Gauge("sluice_ovsdb_in_sync", "1 when the local copy of a database holds all rows that are needed, else 0.", "database")
	dbRows       = databases.Gauge("sluice_ovsdb_rows", "Rows in the local copy of a database.", "database")
	dbReconnects = databases.Counter("sluice_ovsdb_sessions_total", "Sessions with a database that were opened since the start.", "database")
)
