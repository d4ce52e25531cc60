package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	"github.com/ovn-sluice/sluice/pkg/config"
)

const mapsIntro = `# The pinned maps

They are in ` + "`dataplane.bpffs`" + `, ` + "`/sys/fs/bpf/sluice`" + ` by default, and outlive the daemon. The number at the end of a name is the
version of the layout: a build fills new maps beside those of an older one, and refuses to start on a newer one. The structs are in
` + "`bpf/lib/types.h`" + `, and the kernel knows them, so that the maps read as tables:
` + "`bpftool map dump pinned /sys/fs/bpf/sluice/hosts_v1`" + `. Write to none of them: the daemon would not notice.

Sizes are in bytes, rows are those of the default settings. Row 0 of ` + "`entries`, `nexthops` and `groups`" + ` stands for nothing.
What VMs' taps need to balance is in a directory beside it, ` + "`/sys/fs/bpf/sluice-clients`" + `: ` + "`clients` and `neighbors`" + `, which are nowhere else, and of
the maps below, with rows of their own, all that have to do with VIPs. There the VNI is the number of a switch: 2^25 and its tunnel key.

*Front* is an array that repeats rows of the maps behind it where they are found faster.

| map | type | key | value | rows | set by | what it holds | who writes it |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

// mapRow is what the programs' code does not say of a map.
type mapRow struct{ holds, writer string }

const (
	byDaemon  = "sluiced"
	byFabric  = "`fabric_in`"
	byOverlay = "`overlay_in`"
	byBoth    = "both programs"
)

var mapRows = map[string]mapRow{
	"vrfs_v2":           {"VRFs, by VNI: the index of each, and the device that those on the kernel path are handed to.", byDaemon},
	"vrf_front_v2":      {"Front of `vrfs`, with the prefix lengths that occur in the VRF.", byDaemon + ", through shared memory"},
	"vteps_v1":          {"Outer sources that packets are accepted from.", byDaemon},
	"vtep_front_v1":     {"Front of `vteps`, for IPv4.", byDaemon},
	"gateways_v1":       {"Gateway ports, by device, VLAN and MAC.", byDaemon},
	"gate_front_v2":     {"Front of `gateways`.", byDaemon},
	"entries_v1":        {"How a packet gets into OVN through a gateway port; routes name the row.", byDaemon},
	"names_v1":          {"What people call an entry: the bridge and the port. The programs do not read it.", byDaemon},
	"speakers_v1":       {"One entry of each VRF, for ICMP errors about packets that match no route; by VNI.", byDaemon},
	"served_v1":         {"Next hops that ARP and ND are answered for, or not.", byDaemon},
	"known_v1":          {"Addresses of known ports, which nothing is answered for.", byDaemon},
	"asked_v1":          {"The next hop that an entry's router asked for last: the source of ICMP errors towards it.", byOverlay},
	"hosts_v1":          {"Routes to single addresses.", byDaemon},
	"backend_routes_v1": {"Backends that no route of their VRF leads to: for packets that are balanced, and answers.", byDaemon},
	"route_front_v1":    {"Front of `hosts`, `prefixes4` and `prefixes6`.", byDaemon + ", through shared memory"},
	"prefixes4_v1":      {"Routes to IPv4 prefixes, by VNI and prefix.", byDaemon},
	"prefixes6_v1":      {"Routes to IPv6 prefixes, by VNI and prefix.", byDaemon},
	"prefix_cache_v1":   {"What a search in the tries found last.", byBoth},
	"prefix_gen_v1":     {"One more after each change of a prefix: `prefix_cache` from before no longer counts. 0: nothing is cached.", byDaemon + ", through shared memory"},
	"path_mtus_v1":      {"VTEPs that smaller outer packets fit to than the underlay's MTU, with what fits: what the kernel has learned of the way there, or the MTU of its route or device.", byDaemon},
	"path_least_v1":     {"The least of `path_mtus`.", byDaemon},
	"nexthops_v1":       {"VTEP, VNI and router MAC of remote next hops; routes name the row.", byDaemon},
	"groups_v1":         {"Sets of several next hops.", byDaemon},
	"vips_v2":           {"VIPs of load balancers, by VRF, address, port and protocol.", byDaemon},
	"maglev_v2":         {"Tables of backends, in pages of 131,072 words. A table has its slots, four to a word, and behind them its members; VIPs name its first word.", byDaemon},
	"vip_stats_v1":      {"What was balanced for each VIP, in pages of 16,384 rows; a VIP has a row for each processor.", byBoth},
	"backend_stats_v1":  {"What was balanced for each backend, as `vip_stats`, by the rows of `backends`.", byBoth},
	"rates_v1":          {"How many new flows to a VIP are recorded, by the rows of `vip_stats`, and until when some may not be.", byBoth},
	"unrecorded_v1":     {"The latest of the times in `rates`: until then flows are looked for by their hash.", byBoth},
	"rooms_v1":          {"How many rows `sessions` (row 0) and `flows` (row 1) have at most, and from how many on they may evict rows of flows that go on.", byBoth + ", and sluiced, through shared memory"},
	"evictions_v1":      {"Until when answers of evicted sessions may come, and how many were translated by the tables.", byBoth},
	"backends_v1":       {"Backends of VIPs; tables and flows name the row.", byDaemon},
	"backend_front_v1":  {"Bits: what is sent by a backend has its bit set, and is looked for in `sessions` and `flows`.", byDaemon},
	"answers_v2":        {"The VIPs of each backend, by VRF, address, port and protocol: for answers of flows that the node does not know.", byDaemon},
	"sessions_v1":       {"Known flows to VIPs, by the client's address and port: a row for both directions.", byBoth},
	"flow_front_v1":     {"Bits: which clients' ends may have rows in flows. Two generations, and the state of both.", byBoth},
	"flows_v4":          {"Known flows, a row for each direction: to VIPs, from ports of clients that have a session already; what is left to OVN; connections of backends.", byBoth},
	"fragments_v3":      {"Where later fragments of packets to and from VIPs go, by identification: where the first one went.", byBoth},
	"affinity_v3":       {"The backend that a client of a VIP with session affinity had last.", byBoth},
	"clients_v2":        {"VMs whose flows to VIPs are balanced on their taps, by device and VLAN: their switch.", byDaemon + "; beside the others: see above"},
	"neighbors_v1":      {"Where frames for VIPs and backends go on a switch, and which VIPs' MAC addresses VMs are told.", byDaemon + "; beside the others"},
	"scratch_v2":        {"Memory of the programs for the packet at hand.", "the programs"},
	"guarded_v1":        {"Devices that hand over to the routes of a VRF on the kernel path, by index of the device.", byDaemon},
	"underlay_v1":       {"Devices of the underlay where packets of the default VRF come in and go out, by index of the device.", byDaemon},
	"counters_v1":       {"Forwarded packets and bytes; row: twice the index of the VRF, plus the direction.", byBoth},
	"drops_v1":          {"Dropped packets; row: the number of the reason.", byBoth},
	"samples_v1":        {"Samples of dropped packets, for `sluicectl drops --follow`.", byBoth},
	"buckets_v1":        {"When the next ICMP error of a VRF is due, by the row of `counters`; row 0: the next sample.", byBoth},
	"trace_v1":          {"The steps of the packet of `sluicectl trace`.", "the programs' copies that `sluicectl trace` runs"},
}

const metadataMapsIntro = `
## Metadata

Those of the programs on taps have a directory of their own beside that of these: ` + "`dataplane.bpffs`" + ` with ` + "`-metadata`" + ` behind it, by default
` + "`/sys/fs/bpf/sluice-metadata`" + `. Their structs are in ` + "`bpf/lib/metadata.h`" + `. A
build makes an empty map in the place of one of an older layout, and refuses to start on a newer one.

| map | type | key | value | rows | what it holds | who writes it |
| --- | --- | --- | --- | --- | --- | --- |
`

var metadataMapRows = map[string]mapRow{
	"taps_v1":      {"Devices behind which somebody may ask, by index and VLAN: the MAC address that ARP and ND are answered with.", byDaemon},
	"guests4_v1":   {"Who may ask from an IPv4 address, and the number that stands for the guest.", byDaemon},
	"guests6_v1":   {"Who may ask from IPv6 link-local addresses, and the number that stands for the guest.", byDaemon},
	"numbers_v1":   {"Who is behind a number, for the way back.", byDaemon},
	"proxy_v1":     {"The pair of devices to the proxy's namespace.", byDaemon},
	"heartbeat_v1": {"When the proxy gave its last sign of life: nanoseconds of CLOCK_MONOTONIC.", "`sluiced metadata`"},
	"steered_v1":   {"What became of packets: a counter for each outcome.", "`tap_in` and `proxy_in`"},
}

// mapsPage writes the page of the pinned maps.
func mapsPage(w *bytes.Buffer) error {
	d := config.Default().Dataplane.Sizes
	layout, err := ebpf.Layout(ebpf.Limits{VRFs: d.VRFs, Gateways: d.Gateways, VTEPs: d.VTEPs, Served: d.Served, Hosts: d.Hosts, Prefixes: d.Prefixes, NextHops: d.NextHops,
		VIPs: d.VIPs, Backends: d.Backends, Flows: d.Flows})
	if err != nil {
		return err
	}
	w.WriteString(mapsIntro)
	err = mapTable(w, layout, mapRows, func(m ebpf.MapLayout) string { return settings(m.Limits) + " | " })
	if err != nil {
		return err
	}
	if layout, err = taps.Layout(); err != nil {
		return err
	}
	w.WriteString(metadataMapsIntro)
	return mapTable(w, layout, metadataMapRows, func(ebpf.MapLayout) string { return "" })
}

// mapTable writes a row for each map, and fails when rows does not explain exactly those
// that there are. The cells of setBy come behind the number of rows.
func mapTable(w *bytes.Buffer, layout []ebpf.MapLayout, rows map[string]mapRow, setBy func(ebpf.MapLayout) string) error {
	there := map[string]bool{}
	for _, m := range layout {
		there[m.Name] = true
		row, ok := rows[m.Name]
		if !ok {
			return fmt.Errorf("maps.go does not explain %s", m.Name)
		}
		count := fmt.Sprint(m.Rows)
		if m.Key == "" && m.Value == "" {
			count += " bytes"
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s | %s | %s%s | %s |\n", m.Name, m.Type,
			typeCell(m.Key, m.KeySize), typeCell(m.Value, m.ValueSize), count, setBy(m), row.holds, row.writer)
	}
	for name := range rows {
		if !there[name] {
			return fmt.Errorf("maps.go explains %s, which is no map", name)
		}
	}
	return nil
}

func typeCell(name string, size uint32) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("`%s`, %d", name, size)
}

// settings are the keys below dataplane.sizes for fields of ebpf.Limits.
func settings(fields []string) string {
	keys := map[string]string{"VRFs": "vrfs", "Gateways": "gateways", "Served": "served", "Hosts": "hosts", "Prefixes": "prefixes", "NextHops": "nextHops", "VTEPs": "vteps", "VIPs": "vips", "Backends": "backends", "Flows": "flows"}
	var out []string
	for _, f := range fields {
		if k := keys[f]; k != "" {
			out = append(out, "`"+k+"`")
		}
	}
	return strings.Join(out, ", ")
}
