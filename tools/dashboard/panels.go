package main

// view is how a panel shows its values.
type view int

const (
	lines  view = iota
	states      // bands of 1, which is well, and 0
	faults      // bands of 1, which is a fault, and 0
)

// panel is one panel; its labels, types and description are those of its metrics.
type panel struct {
	title, unit string
	view        view
	queries     []query
	// says is the description, where the panel shows something else than its metric; "": that
	// of the metrics.
	says string
}

// query is made of a metric of nodemetrics.List, by its type: the rate of a counter, the median and the
// 99th percentile of a histogram, the sum of a gauge. Its series are one for each set of labels.
type query struct {
	metric string
	// over is the function in place of sum.
	over string
	// per are labels of the target that stay apart, before those of the metric.
	per []string
	// of are the labels of the metric that stay apart; nil: all.
	of []string
	// shape has %s for what the rest makes; "": %s.
	shape string
}

// row is a row of panels.
type row struct {
	title  string
	panels []panel
}

var node = []string{"instance"}

// flag is a gauge of 0 and 1 on each node.
func flag(title string, v view, metrics ...string) panel {
	p := panel{title: title, view: v}
	for _, m := range metrics {
		p.queries = append(p.queries, query{metric: m, over: "max", per: node})
	}
	return p
}

// plain is a panel of whole metrics.
func plain(title, unit string, metrics ...string) panel {
	p := panel{title: title, unit: unit}
	for _, m := range metrics {
		p.queries = append(p.queries, query{metric: m})
	}
	return p
}

const (
	packets = "pps"
	bytes   = "Bps"
	seconds = "s"
	rate    = "ops"
	count   = "short"
)

var rows = []row{
	{"Node", []panel{
		{title: "Versions", unit: count, queries: []query{{metric: "sluice_build_info", over: "count", of: []string{"version"}}}},
		flag("Components", states, "sluice_component_ready"),
		{title: "Drain", view: faults, queries: []query{{metric: "sluice_drain_stage", over: "max", per: node, shape: `%s and on (instance, stage) sluice_drain_stage{stage!="serving"}`}}},
		plain("Objects", count, "sluice_objects"),
		plain("New errors of objects", rate, "sluice_object_errors_total"),
		flag("Databases", states, "sluice_ovsdb_connected", "sluice_ovsdb_in_sync"),
		plain("Rows of databases", count, "sluice_ovsdb_rows"),
		plain("New sessions with databases", rate, "sluice_ovsdb_sessions_total"),
		plain("Rows of tables", count, "sluice_table_rows"),
		flag("Tables with held rows", faults, "sluice_table_held"),
		plain("Operations of tables", rate, "sluice_table_operations_total"),
		{title: "Maps, used part", unit: "percentunit", queries: []query{{metric: "sluice_map_rows", over: "max", per: node,
			shape: `%s / on (instance, map, table) group_left () max by (instance, map, table) (sluice_map_size_rows)`}}},
		plain("Passes of the reconciler", seconds, "sluice_reconcile_pass_seconds"),
		flag("Sources of metrics", states, "sluice_collector_success"),
		plain("Unreadable samples", rate, "sluice_unreadable_samples_total"),
	}},
	{"Tenants", []panel{
		plain("VRFs by path", count, "sluice_vrfs"),
		plain("Packets of VRFs", packets, "sluice_vrf_packets_total"),
		plain("Bytes of VRFs", bytes, "sluice_vrf_bytes_total"),
		plain("Received prefixes of VRFs", count, "sluice_vrf_import_prefixes"),
		plain("Refused prefixes of VRFs", rate, "sluice_vrf_import_refused_total"),
		plain("Southbound to announcement", seconds, "sluice_announce_delay_seconds"),
	}},
	{"BGP", []panel{
		flag("Sessions", states, "sluice_bgp_neighbor_up"),
		{title: "Age of sessions", unit: seconds, queries: []query{{metric: "sluice_bgp_neighbor_established_timestamp_seconds", over: "max", per: node, shape: "time() - %s"}},
			says: "Time since the session with a BGP neighbour was established; absent while the session is down."},
		plain("Lost sessions", rate, "sluice_bgp_neighbor_flaps_total"),
		flag("Sessions ended by the prefix limit", faults, "sluice_bgp_neighbor_prefix_limit"),
		plain("Type-5 routes", count, "sluice_bgp_neighbor_routes"),
		plain("Unicast routes", count, "sluice_bgp_neighbor_unicast_routes"),
		plain("Rejected routes", rate, "sluice_bgp_rejected_routes_total"),
		plain("Rejected routes of neighbours", count, "sluice_bgp_neighbor_rejected_routes"),
		plain("Ignored UPDATEs of sessions", count, "sluice_bgp_neighbor_ignored_updates"),
		{title: "Path MTUs below the underlay's", unit: "decbytes", queries: []query{{metric: "sluice_vtep_path_mtu_bytes", over: "min", per: node}}},
		plain("Routes of the underlay", count, "sluice_underlay_routes"),
		plain("Refused routes of the underlay", count, "sluice_underlay_refused_routes"),
		flag("BFD", states, "sluice_bfd_session_up"),
		plain("Lost paths (BFD)", rate, "sluice_bfd_flaps_total"),
		plain("BFD packets", packets, "sluice_bfd_packets_total"),
		plain("Unused BFD packets", packets, "sluice_bfd_dropped_packets_total"),
	}},
	{"Load balancers", []panel{
		plain("Packets of VIPs", packets, "sluice_vip_packets_total"),
		plain("Bytes of VIPs", bytes, "sluice_vip_bytes_total"),
		plain("New sessions of VIPs", rate, "sluice_vip_sessions_total"),
		plain("Open sessions of VIPs", count, "sluice_vip_open_sessions"),
		plain("Packets without a backend", packets, "sluice_vip_dropped_packets_total"),
		plain("Packets of sessions without an entry", packets, "sluice_vip_unrecorded_packets_total"),
		plain("Packets of backends", packets, "sluice_backend_packets_total"),
		plain("Bytes of backends", bytes, "sluice_backend_bytes_total"),
		plain("New sessions of backends", rate, "sluice_backend_sessions_total"),
		{title: "VIPs with different Maglev tables", view: faults, queries: []query{{metric: "sluice_vip_table_hash", over: "max",
			shape: `%s != bool min by (vni, vip, protocol) (sluice_vip_table_hash)`}}},
		plain("Resized Maglev tables", rate, "sluice_vip_table_steps_total"),
		plain("VMs by path", count, "sluice_vip_vms"),
		flag("Evictions of sessions", faults, "sluice_sessions_evicting"),
		plain("Replies without a session", packets, "sluice_evicted_answers_total"),
	}},
	{"Metadata", []panel{
		plain("Requests", rate, "sluice_metadata_requests_total"),
		plain("Duration of requests", seconds, "sluice_metadata_request_seconds"),
		plain("Connections", count, "sluice_metadata_connections"),
		plain("Listeners", count, "sluice_metadata_listeners"),
		plain("Ports and networks", count, "sluice_metadata_identities"),
		{title: "Age of the heartbeat", unit: seconds, queries: []query{{metric: "sluice_metadata_heartbeat_age_seconds", over: "max", per: node}}},
		plain("Packets on taps", packets, "sluice_metadata_packets_total"),
		plain("Unreadable identities files", rate, "sluice_metadata_file_errors_total"),
	}},
	{"Drops by reason", []panel{
		plain("Dropped packets", packets, "sluice_dropped_packets_total"),
		plain("Packets dropped by devices", packets, "sluice_device_dropped_packets_total"),
		{title: "Dropped packets by node", unit: packets, queries: []query{{metric: "sluice_dropped_packets_total", per: node, of: []string{}}}},
	}},
}
