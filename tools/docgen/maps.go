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

What ` + "`bpftool`" + ` shows of Sluice, map by map. The maps are pinned in ` + "`dataplane.bpffs`" + `, by default ` + "`/sys/fs/bpf/sluice`" + `, and outlive the daemon. Do not write to them: the daemon would not notice.
The kernel has the types (` + "`bpf/lib/types.h`" + `), so the maps read as tables:

` + "```sh" + `
bpftool map dump pinned /sys/fs/bpf/sluice/hosts_v1
` + "```" + `

- The number at the end of a name is the version of the layout. A build fills new maps beside older ones, and refuses to start on newer ones.
- Sizes are in bytes. Numbers of rows are for the default settings.
- Row 0 of ` + "`entries`, `nexthops` and `groups`" + ` means none.
- A prefilter is an array that repeats rows of other maps for a faster lookup.
- The directory beside, ` + "`/sys/fs/bpf/sluice-clients`" + `, has the maps of balancing on taps: ` + "`clients` and `neighbors`" + `, and all maps of
  VIPs once more, with rows of their own. The VNI there is the number of a switch: 2^25 plus its tunnel key.

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
	"vrfs_v2":           {"VRFs, by VNI: the index, and for the kernel path the device that gets the packets.", byDaemon},
	"vrf_front_v2":      {"Prefilter of `vrfs`, with the prefix lengths that occur in the VRF.", byDaemon + ", through shared memory"},
	"vteps_v1":          {"Accepted outer sources of packets.", byDaemon},
	"vtep_front_v1":     {"Prefilter of `vteps`, for IPv4.", byDaemon},
	"gateways_v1":       {"Gateway ports, by device, VLAN and MAC.", byDaemon},
	"gate_front_v2":     {"Prefilter of `gateways`.", byDaemon},
	"entries_v1":        {"How a packet enters OVN through a gateway port; routes name the row.", byDaemon},
	"names_v1":          {"The name of an entry for people: the bridge and the port. The programs do not read it.", byDaemon},
	"speakers_v1":       {"One entry per VRF, by VNI: it sends ICMP errors about packets that match no route.", byDaemon},
	"served_v1":         {"Next hops: whether the programs answer ARP and ND for them.", byDaemon},
	"known_v1":          {"Addresses of ports in OVN: the programs do not answer for them.", byDaemon},
	"asked_v1":          {"The next hop that an entry's router last asked for: the source of ICMP errors to the router.", byOverlay},
	"hosts_v1":          {"Routes to single addresses.", byDaemon},
	"backend_routes_v1": {"Backends without a route in their VRF: for balanced packets, and replies.", byDaemon},
	"route_front_v1":    {"Prefilter of `hosts`, `prefixes4` and `prefixes6`.", byDaemon + ", through shared memory"},
	"prefixes4_v1":      {"Routes to IPv4 prefixes, by VNI and prefix.", byDaemon},
	"prefixes6_v1":      {"Routes to IPv6 prefixes, by VNI and prefix.", byDaemon},
	"prefix_cache_v1":   {"Latest results of lookups in the tries.", byBoth},
	"prefix_gen_v1":     {"A generation, increased by each change of a prefix: older rows of `prefix_cache` expire. 0: nothing is cached.", byDaemon + ", through shared memory"},
	"path_mtus_v1":      {"VTEPs whose path MTU is below the underlay's MTU, with that MTU: learned by the kernel, or of the route or device.", byDaemon},
	"path_least_v1":     {"The smallest MTU in `path_mtus`.", byDaemon},
	"nexthops_v1":       {"VTEP, VNI and router MAC of remote next hops; routes name the row.", byDaemon},
	"groups_v1":         {"Sets of several next hops.", byDaemon},
	"vips_v2":           {"VIPs of load balancers, by VRF, address, port and protocol.", byDaemon},
	"maglev_v2":         {"Maglev tables, in pages of 131,072 words. A Maglev table has its slots, four to a word, and behind them its backends; VIPs name its first word.", byDaemon},
	"vip_stats_v1":      {"Counters of each VIP, in pages of 16,384 rows; a VIP has a row for each processor.", byBoth},
	"backend_stats_v1":  {"Counters of each backend, as `vip_stats`, by the rows of `backends`.", byBoth},
	"rates_v1":          {"Rates of new sessions of a VIP, by the rows of `vip_stats`, and until when sessions may have no entry.", byBoth},
	"unrecorded_v1":     {"The latest time in `rates`: until then a packet without a session may still be of a VIP.", byBoth},
	"rooms_v1":          {"The capacity of `sessions` (row 0) and `flows` (row 1), and the fill from which they may evict open sessions.", byBoth + ", and sluiced, through shared memory"},
	"evictions_v1":      {"Until when replies of evicted sessions may arrive, and how many the Maglev tables translated.", byBoth},
	"backends_v1":       {"Backends of VIPs; Maglev tables and sessions name the row.", byDaemon},
	"backend_front_v1":  {"Prefilter in bits: packets whose source bit is set may be a backend's, and are looked up in `sessions` and `flows`.", byDaemon},
	"answers_v2":        {"The VIPs of each backend, by VRF, address, port and protocol: for replies without a session.", byDaemon},
	"sessions_v1":       {"Sessions, by the client's address and port: one row for both directions.", byBoth},
	"flow_front_v1":     {"Prefilter of `flows` in bits, by the client's address and port. Two generations, and the state of both.", byBoth},
	"flows_v4":          {"Connections with a row for each direction: sessions from client ports that have a row in `sessions` already, connections left to OVN, connections of backends.", byBoth},
	"fragments_v3":      {"The destination of later fragments of packets to and from VIPs, by identification: the first fragment's.", byBoth},
	"affinity_v3":       {"The backend that a client of a VIP with session affinity had last.", byBoth},
	"clients_v2":        {"VMs whose sessions are balanced on their taps, by device and VLAN: their switch.", byDaemon + ", in `sluice-clients`"},
	"neighbors_v1":      {"The destinations of frames for VIPs and backends on a switch, and the MAC addresses of VIPs that VMs get.", byDaemon + ", in `sluice-clients`"},
	"scratch_v2":        {"Memory of the programs for the current packet.", "the programs"},
	"guarded_v1":        {"Devices that lead into the routes of a VRF on the kernel path, by index of the device.", byDaemon},
	"underlay_v1":       {"Devices of the underlay that packets of the default VRF enter and leave by, by index of the device.", byDaemon},
	"counters_v1":       {"Forwarded packets and bytes; row: twice the index of the VRF, plus the direction.", byBoth},
	"drops_v1":          {"Dropped packets; row: the number of the reason.", byBoth},
	"samples_v1":        {"Samples of dropped packets, for `sluicectl drops --follow`.", byBoth},
	"buckets_v1":        {"The earliest time of the next ICMP error of a VRF, by the row of `counters`; row 0: of the next sample.", byBoth},
	"trace_v1":          {"The steps of the packet of `sluicectl trace`.", "the programs' copies that `sluicectl trace` runs"},
}

const metadataMapsIntro = `
## Metadata

The metadata programs on taps have their maps in ` + "`dataplane.bpffs`" + ` with ` + "`-metadata`" + ` appended, by default
` + "`/sys/fs/bpf/sluice-metadata`" + `. Their structs are in ` + "`bpf/lib/metadata.h`" + `. A
build replaces a map of an older layout by an empty one, and refuses to start on a newer one.

| map | type | key | value | rows | what it holds | who writes it |
| --- | --- | --- | --- | --- | --- | --- |
`

var metadataMapRows = map[string]mapRow{
	"taps_v1":      {"Taps whose VMs may ask, by index and VLAN: the MAC address in answers to ARP and ND.", byDaemon},
	"guests4_v1":   {"Which VM may ask from an IPv4 address, and the VM's number.", byDaemon},
	"guests6_v1":   {"Which VM may ask from IPv6 link-local addresses, and the VM's number.", byDaemon},
	"numbers_v1":   {"The VM of a number, for replies.", byDaemon},
	"proxy_v1":     {"The veth pair to the proxy's namespace.", byDaemon},
	"heartbeat_v1": {"The time of the proxy's last heartbeat: nanoseconds of CLOCK_MONOTONIC.", "`sluiced metadata`"},
	"steered_v1":   {"A counter of packets for each outcome.", "`tap_in` and `proxy_in`"},
}

// mapsPage writes the page of the pinned maps.
func mapsPage(w *bytes.Buffer) error {
	d := config.Default().Dataplane.Sizes
	layout, err := ebpf.Layout(ebpf.Limits{VRFs: d.VRFs, Gateways: d.Gateways, VTEPs: d.VTEPs, Served: d.Served, Hosts: d.Hosts, Prefixes: d.Prefixes, NextHops: d.NextHops,
		VIPs: d.VIPs, Backends: d.Backends, Flows: d.SessionEntries})
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
	keys := map[string]string{"VRFs": "vrfs", "Gateways": "gateways", "Served": "served", "Hosts": "hosts", "Prefixes": "prefixes", "NextHops": "nextHops", "VTEPs": "vteps", "VIPs": "vips", "Backends": "backends", "Flows": "sessionEntries"}
	var out []string
	for _, f := range fields {
		if k := keys[f]; k != "" {
			out = append(out, "`"+k+"`")
		}
	}
	return strings.Join(out, ", ")
}
