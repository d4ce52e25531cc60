package reason

// Reasons of components.
const (
	Starting      = "starting"
	Disconnected  = "disconnected"
	Behind        = "behind"
	Older         = "older"
	Syncing       = "syncing"
	InSync        = "in-sync"
	Misconfigured = "misconfigured"
	Refused       = "refused"
	Published     = "published"
	NotRegistered = "not-registered"
	NoSystemID    = "no-system-id"
	RoleGateway   = "gateway"
	RoleNone      = "none"
	NoStandby     = "no-standby"
	Loaded        = "loaded"
	Rebuilding    = "rebuilding"
	StartFailed   = "start-failed"
	Idle          = "idle"
	Leftovers     = "leftovers"
	Broken        = "broken"
	Intact        = "intact"
	NoVTEP        = "no-vtep"
	Overridden    = "overridden"
	Clear         = "clear"
	Stopped       = "stopped"
	NotStarted    = "not-started"
	NoProxy       = "no-proxy"
	Receiving     = "receiving"
	NoNeighbors   = "no-neighbors"
	NoSession     = "no-session"
	Unknown       = "unknown"
	Announcing    = "announcing"
	Silent        = "silent"

	// Of the metadata proxy.
	Listening = "listening"
	Beating   = "beating"

	// The stages of a drain.
	Serving          = "serving"
	GracefulShutdown = "graceful-shutdown"
	Withdrawn        = "withdrawn"
	Drained          = "drained"
)

// Failure tells whether a component that has a reason from the beginning has failed,
// and does not just wait for its turn.
func Failure(reason string) bool {
	switch reason {
	case StartFailed, Misconfigured, Refused, Broken, NoVTEP, Overridden, Leftovers, Silent, NotStarted, NotRead:
		return true
	}
	return false
}

// Conditions lists the reasons of components.
func Conditions() []Entry {
	databases := []string{"sb", "nb", "vswitchd"}
	bgp, dataplane, fabric, role, private := []string{"bgp"}, []string{"dataplane"}, []string{"fabric"}, []string{"role"}, []string{"chassis-private"}
	proxy, identities, listeners, heartbeat := []string{"metadata-proxy"}, []string{"identities"}, []string{"listeners"}, []string{"heartbeat"}
	flows, drain := []string{"flows"}, []string{"drain"}
	metadata := []string{"metadata"}
	clients := []string{"clients"}
	announcements := []string{"announcements"}
	return []Entry{
		{Starting, []string{"each required one"}, notReady, "The component has reported nothing since sluiced started. The detail says what it waits for.", "Wait. If it stays, read the detail and the log."},
		{Disconnected, databases, notReady, "The node has no session with the database. Forwarding is unchanged.", "Check the server and the network path to it; the detail has the error."},
		{Behind, databases, notReady, "The servers that answer may hold older content than the node has seen, and sluiced does not use them. After a minute it uses a server that cannot show its age (`older`). Forwarding is unchanged.", "Bring back the servers in the detail, or the source of a relay. After a restore of the database, wait a minute."},
		{Older, databases, ready, "All rows that the node needs are there, but the server could not show that they are as new as before. sluiced used it after a minute without a better one.", "Nothing, if the database was restored or a standby took over. Otherwise read the detail."},
		{Syncing, databases, notReady, "Rows that the node needs are still missing. sluiced deletes nothing meanwhile.", "Wait. If it stays, the server is overloaded or hangs."},
		{InSync, databases, ready, "All rows that the node needs are there.", nothing},
		{Misconfigured, []string{"sb", "nb"}, notReady, "The endpoints or the certificates are unusable. An existing session continues.", "Correct `ovn-remote`, `ovn.sb`, `ovn.nb` or the TLS files; the detail says which."},
		{Refused, private, notReady, "The Southbound database rejects sluiced's version in the node's Chassis_Private row. Everything else works.", "With access control, use the `system-id` as the certificate's common name."},
		{NotRegistered, private, notReady, "Southbound has no row with the node's name in Chassis or Chassis_Private, so other nodes do not know the node's VTEP. Without the Chassis row the node has no gateway port. sluiced writes its keys as soon as the rows are back.", "Read the detail: it has the name and the tables. Start ovn-controller, or correct the name. After a change of the `system-id`, delete the chassis of the earlier name: `ovn-sbctl chassis-del NAME`."},
		{Published, private, ready, "The node's rows in Southbound have sluiced's version and its VTEP.", nothing},
		{RoleGateway, role, ready, "The node forwards. The detail names the row or the setting that makes it a gateway.", nothing},
		{Standby, []string{"standby"}, ready, "Gateway ports of other nodes may fail over to this one. Everything but their routes is programmed. `sluicectl vrf show` names the chassis of each.", nothing},
		{NoStandby, []string{"standby"}, ready, "No gateway port of another node may fail over to this one, or `evpn.standby` is `off`.", nothing},
		{RoleNone, role, ready, "No gateway port needs the node, and nothing is programmed.", nothing},
		{NoSystemID, role, notReady, "The local Open vSwitch database names no chassis.", "Install OVN on the node, or set `ovn.systemID`."},
		{Loaded, dataplane, ready, "Maps and programs are loaded and attached.", nothing},
		{Rebuilding, dataplane, notReady, "Programs or maps of an earlier start still forward. New programs (another build, other constants) replace them some seconds after BGP has its sessions; new maps (another layout) when they are filled: when all databases and BGP are in sync.", "Wait. If it stays, find the component that is not in sync."},
		{StartFailed, dataplane, notReady, "The data plane did not start. sluiced retries every 5 seconds. Pinned programs keep forwarding.", "Read the detail: no VTEP, a foreign device, a missing capability or kernel option."},
		{Idle, []string{"dataplane", "bgp"}, ready, "The node is no gateway.", nothing},
		{Leftovers, dataplane, notReady, "The node is no longer a gateway, and some of its objects cannot be removed.", "Read the detail. Or stop sluiced and run `sluicectl cleanup`, which removes the same objects."},
		{Broken, fabric, notReady, "`sluice-vxlan` or its program (with `path: kernel`: the program `vtep_guard` instead) differs from what sluiced created, and cannot be restored. Nothing is announced.", "Remove what the detail names: a foreign device with the name, another owner of the UDP port."},
		{NoVTEP, fabric, notReady, "The node lacks its tunnel address: packets from other nodes do not arrive. Nothing is announced.", "Add the address again, or set its device up; the detail names both. Then add the routes with it as preferred source (`src`): the kernel deleted them too. Sluice announces the address by itself."},
		{Intact, fabric, ready, "`sluice-vxlan` and its program (with `path: kernel`: the program `vtep_guard` instead) are as sluiced created them.", nothing},
		{Overridden, flows, notReady, "Foreign flows on a provider bridge precede Sluice's steering flows and redirect some of their packets. The detail names the flows.", "Remove the flows, or give them a priority below 100, or a match that excludes OVN's patch port and Sluice's port."},
		{Clear, flows, ready, "No foreign flow precedes a steering flow.", nothing},
		{Unknown, flows, notReady, "The flows of a provider bridge cannot be read.", "Read the detail; check whether ovs-vswitchd runs."},
		{Announcing, announcements, ready, "The node announces routes of tenants.", nothing},
		{Idle, announcements, ready, "There is no route to announce: no tenant has one here, or the node is drained.", nothing},
		{Silent, announcements, notReady, "The node has routes to announce, and has announced none for 10 seconds. The detail has their number, and what one of them waits for.", "Read the detail, and the problems of bridges and gateways: they name what is missing."},
		{NoSession, announcements, notReady, "The node has routes to announce, but no session with any neighbour for the restart time (`bgp.gracefulRestart.time`), at least a minute. Neighbours have dropped the node's routes; its tenants are cut.", "Run `sluicectl bgp neighbors` for the last error of each. See the problem `cut-off`, if there is one."},
		{Stopped, []string{"fabric", "flows", "announcements"}, ready, "The gateway part of sluiced restarts with changed facts, or the node is no longer a gateway. The detail says which.", nothing},
		{Stopped, bgp, notReady, "The gateway part of sluiced restarts with changed facts, as after another `system-id`, or the node is no longer a gateway. The detail says what it waits for; programs with another router MAC take seconds to load.", "Wait."},
		{Misconfigured, bgp, notReady, "The configuration of BGP is invalid.", "Correct what the detail names."},
		{NotStarted, bgp, notReady, "BGP does not start, for example because its port is taken. sluiced retries every second; forwarding does not wait.", "Free the port, or change `bgp.listen`; the detail has the error."},
		{Receiving, bgp, notReady, "The neighbours have not sent all their routes yet. sluiced removes no imported route meanwhile.", "Wait; the time is limited."},
		{NoSession, bgp, notReady, "No neighbour that speaks l2vpn-evpn has a session.", "Run `sluicectl bgp neighbors` for the last error of each."},
		{NoNeighbors, bgp, ready, "The configuration names no neighbour.", "Add one below `bgp.neighbors`, if other nodes are to be reached."},
		{InSync, bgp, ready, "At least one neighbour exchanges routes with the node. The detail names the neighbours without a session.", nothing},
		{Unknown, bgp, notReady, "The speaker does not answer.", "Read the detail and the log."},
		{Idle, proxy, ready, "The metadata proxy does nothing: `metadata.backend` is `none`, or `metadata.enabled` is false.", nothing},
		{Idle, heartbeat, ready, "No tap steers requests (`metadata.path`), so no program reads the heartbeat.", nothing},
		{InSync, identities, ready, "The proxy has read the identities file: which VM's requests arrive where.", nothing},
		{Syncing, identities, notReady, "sluiced has not written the identities file. Connections wait.", "Start sluiced on the node, with the same `stateDir`."},
		{NotRead, identities, notReady, "The identities file cannot be read or parsed. The last good one stays in use.", "Read the detail. A sluiced of another version writes another format: restart both with one version."},
		{Listening, listeners, ready, "The proxy accepts connections at all its places.", nothing},
		{Waiting, listeners, notReady, "The proxy does not accept connections at the places in the detail yet.", "Wait. If it stays, sluiced has not created the namespace: read its log and `sluicectl status`."},
		{Beating, heartbeat, ready, "The programs on taps see the proxy's heartbeat and steer requests to the proxy.", nothing},
		{Waiting, heartbeat, notReady, "The programs on taps see no heartbeat and leave requests to OVN.", "Read the detail: the listeners, or sluiced's pins, are missing."},
		{GracefulShutdown, drain, ready, "The node is being drained. Its routes ask others to use every other path first (RFC 8326). They are withdrawn at the time in the detail.", "Move the gateways, and wait; `sluicectl undrain` ends the drain."},
		{Withdrawn, drain, ready, "The node announces nothing, and forwards packets that still arrive. The detail names the VRFs with traffic.", "Wait. If it stays, move the gateways of those VRFs to other nodes."},
		{Drained, drain, ready, "The node announces nothing, and no VRF had traffic for 5 seconds.", "Do the maintenance, then run `sluicectl undrain`."},
		{Serving, metadata, ready, "Metadata requests of VMs are steered to the proxy, and the proxy is alive.", nothing},
		{NoProxy, metadata, notReady, "The proxy gives no sign of life: requests are left to OVN. A packet that opens a connection is dropped until `metadata.staleAfter` has passed.", "Start `sluiced metadata` on the node; read its log."},
		{Waiting, metadata, notReady, "With `metadata.securityGroups: respect`: the Northbound database, whose ACLs say who may ask, has not answered since sluiced started. Ports that were served stay served; no port is added. After four minutes ports with unknown ACLs are left to OVN.", "See the component `nb`."},
		{Broken, metadata, notReady, "The proxy's namespace, or the program on the path to it, differs from what sluiced created, and cannot be restored.", "Remove what the detail names: a foreign device or namespace with the name."},
		{StartFailed, metadata, notReady, "Metadata did not start. sluiced retries every 5 seconds. Pinned programs keep working.", "Read the detail: a foreign device or namespace, a missing capability or kernel option."},
		{Leftovers, metadata, notReady, "Metadata is off, and some of its objects cannot be removed.", "Read the detail. Or stop sluiced and run `sluicectl cleanup`, which removes the same objects."},
		{Idle, metadata, ready, "Nothing is steered: `metadata.backend` is `none`, or `metadata.enabled` is false.", nothing},
		{Serving, clients, ready, "Packets of VMs here to VIPs are balanced on the VMs' taps.", nothing},
		{Idle, clients, ready, "OVN balances packets of VMs: `loadBalancing.enabled` or `loadBalancing.clients` is false.", nothing},
		{Waiting, clients, ready, "A database of OVN has not answered since sluiced started. What was balanced on taps stays so; nothing is added.", "See the components `sb` and `nb`."},
		{Rebuilding, clients, notReady, "Programs or maps of an earlier start still balance. New programs (another build, other constants) replace them when they are loaded; new maps (another layout) when they are filled: when all databases are in sync, and taps are there.", "Wait. If it stays, find the component that is not in sync."},
		{StartFailed, clients, notReady, "Balancing on taps did not start. sluiced retries every 5 seconds. Pinned programs keep working.", "Read the detail: a missing capability or kernel option, another sluiced."},
		{Leftovers, clients, notReady, "Balancing on taps is off, and some of its objects cannot be removed.", "Read the detail. Or stop sluiced and run `sluicectl cleanup`, which removes the same objects."},
		{Serving, drain, ready, "The node was drained, and announces its routes again.", nothing},
	}
}
