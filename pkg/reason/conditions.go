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
		{Starting, []string{"each that is required"}, notReady, "It has not said anything since sluiced started.", "Wait; if it stays, see the log."},
		{Disconnected, databases, notReady, "There is no session with the database. Forwarding is unchanged.", "See the detail for the error; check the server and the way to it."},
		{Behind, databases, notReady, "The servers that answer may have an older content than the node has seen, and are not used for a minute. Forwarding is unchanged.", "Wait; see the detail: which servers of the list are missing, and why does the relay or standby lag?"},
		{Older, databases, ready, "All rows that the node needs are there. The server could not show that they are as new as those before, and was used after a minute without a better one.", "None, if the database was restored or a standby took over. Else see the detail."},
		{Syncing, databases, notReady, "The rows that the node needs are not all there yet. Nothing is deleted meanwhile.", "Wait; if it stays, the server is overloaded or hangs."},
		{InSync, databases, ready, "All rows that the node needs are there.", nothing},
		{Misconfigured, []string{"sb", "nb"}, notReady, "The endpoints or the certificates cannot be used. A session from before goes on.", "Correct `ovn-remote`, `ovn.sb`, `ovn.nb` or the TLS files; the detail says which."},
		{Refused, private, notReady, "The Southbound database did not let sluiced write its version into the node's Chassis_Private row. All else works.", "With access control, the common name of the certificate has to be the `system-id`."},
		{Published, private, ready, "The node's Chassis_Private row has sluiced's version.", nothing},
		{RoleGateway, role, ready, "The node forwards; the detail names the row, or the setting, that makes it so.", nothing},
		{Standby, []string{"standby"}, ready, "Gateway ports are on other nodes and may come to this one; all but their routes is programmed. `sluicectl vrf show` names the chassis of each.", nothing},
		{NoStandby, []string{"standby"}, ready, "No gateway port of another node may come to this one, or `evpn.standby` is `off`.", nothing},
		{RoleNone, role, ready, "No gateway port needs the node, and it has nothing programmed.", nothing},
		{NoSystemID, role, notReady, "The local Open vSwitch database names no chassis.", "Install OVN on the node, or set `ovn.systemID`."},
		{Loaded, dataplane, ready, "Maps and programs are loaded and attached.", nothing},
		{Rebuilding, dataplane, notReady, "An earlier start left programs of another build or with other constants, which forward until this start's are loaded, some seconds after BGP has its sessions; or maps of another layout, which forward as they were until the new ones are filled: when all databases and BGP are in sync.", "Wait; if it stays, see what is not in sync."},
		{StartFailed, dataplane, notReady, "The data plane could not be started, which is tried again every 5 seconds. What is pinned goes on forwarding.", "See the detail: no VTEP, a foreign device, a missing capability or kernel option."},
		{Idle, []string{"dataplane", "bgp"}, ready, "The node is no gateway.", nothing},
		{Leftovers, dataplane, notReady, "The node is no gateway any more, and something of the time when it was one cannot be removed.", "See the detail; `sluicectl cleanup` after stopping sluiced removes the same."},
		{Broken, fabric, notReady, "`sluice-vxlan` or its program, with `path: kernel` the program `vtep_guard`, is not as it was made, and cannot be made again. Nothing is announced.", "Remove what the detail names: a foreign device with the name, another owner of the UDP port."},
		{NoVTEP, fabric, notReady, "The node does not have its tunnel address, so that nothing that others send arrives. Nothing is announced.", "Add the address again, or set its device up: the detail names both. Then add the routes that had it as preferred source (`src`): the kernel has removed them with the address. The address is announced again by itself."},
		{Intact, fabric, ready, "`sluice-vxlan` and its program, with `path: kernel` the program `vtep_guard`, are as they were made.", nothing},
		{Overridden, flows, notReady, "Flows of others on a provider bridge come before Sluice's for some of the same packets, and take them another way. The detail names them.", "Remove them, or give them a priority below 100 or a match that leaves OVN's patch port and Sluice's port out."},
		{Clear, flows, ready, "No flow of another comes before Sluice's for the same packets.", nothing},
		{Unknown, flows, notReady, "The flows of a provider bridge cannot be read.", "See the detail: is ovs-vswitchd running?"},
		{Announcing, announcements, ready, "Routes of tenants are announced.", nothing},
		{Idle, announcements, ready, "No route is to be announced: no tenant has one here, or the node is drained.", nothing},
		{Silent, announcements, notReady, "Routes are to be announced, and for 10 seconds none has been. The detail has the number, and what one of them waits for.", "See the detail, and the problems of bridges and gateways: what is missing?"},
		{NoSession, announcements, notReady, "Routes are to be announced, and there has been no session with any neighbour for the restart time (`bgp.gracefulRestart.time`), a minute at least: neighbours have dropped the node's routes, and its tenants are cut.", "`sluicectl bgp neighbors` names the last error of each; see the problem `cut-off`, if there is one."},
		{Stopped, []string{"fabric", "flows", "announcements"}, ready, "The node is being started anew with other facts, or is no gateway any more.", nothing},
		{Stopped, bgp, notReady, "The same.", "Wait."},
		{Misconfigured, bgp, notReady, "The BGP speaker cannot be made of the configuration.", "Correct what the detail names."},
		{NotStarted, bgp, notReady, "BGP cannot start, as when its port is taken. It is tried again each second; forwarding does not wait for it.", "See the detail; free the port, or change `bgp.listen`."},
		{Receiving, bgp, notReady, "The neighbours have not sent all their routes yet. No imported route is removed meanwhile.", "Wait; the time is limited."},
		{NoSession, bgp, notReady, "There is no session with any neighbour that speaks l2vpn-evpn.", "`sluicectl bgp neighbors` names the last error of each."},
		{NoNeighbors, bgp, ready, "The configuration names no neighbour.", "Add one below `bgp.neighbors`, if other nodes are to be reached."},
		{InSync, bgp, ready, "Routes go in and out, with one neighbour at least; the detail names those without a session.", nothing},
		{Unknown, bgp, notReady, "The speaker does not answer.", "See the detail and the log."},
		{Idle, proxy, ready, "`metadata.backend` is `none`, or `metadata.enabled` is false: the metadata proxy does nothing.", nothing},
		{Idle, heartbeat, ready, "Nothing is steered from taps (`metadata.path`), so nobody looks at the heartbeat.", nothing},
		{InSync, identities, ready, "The file that says whose requests come from where has been read.", nothing},
		{Syncing, identities, notReady, "sluiced has not written the file that says whose requests come from where. Connections wait.", "Start sluiced on the node, with the same `stateDir`."},
		{NotRead, identities, notReady, "That file cannot be read, or not be understood. The last one that could stays in use.", "See the detail; a sluiced of another version writes another form: restart both with the same."},
		{Listening, listeners, ready, "The proxy takes connections in each place that it is to.", nothing},
		{Waiting, listeners, notReady, "It does not yet, in the places of the detail.", "Wait; if it stays, sluiced has not made the namespace: see its log, and `sluicectl status`."},
		{Beating, heartbeat, ready, "The programs on taps know that the proxy serves, and steer requests to it.", nothing},
		{Waiting, heartbeat, notReady, "They do not know it, and leave requests to OVN.", "See the detail: the listeners, or what sluiced pins, are not there."},
		{GracefulShutdown, drain, ready, "The node is being drained: its routes ask others to use every other path first (RFC 8326). They are withdrawn at the time in the detail.", "Wait, and move the gateways meanwhile; `sluicectl undrain` stops it."},
		{Withdrawn, drain, ready, "The node announces nothing, and forwards what still comes; the detail names the VRFs with traffic.", "Wait; if it stays, move the gateways of those VRFs to other nodes."},
		{Drained, drain, ready, "The node announces nothing, and no VRF had traffic for 5 seconds.", "Do what it was drained for; `sluicectl undrain` puts it back."},
		{Serving, metadata, ready, "Metadata requests of VMs are steered to the proxy, and the proxy is alive.", nothing},
		{NoProxy, metadata, notReady, "The proxy is not heard of: requests go on to OVN. A packet that opens a connection is dropped until `metadata.staleAfter` has passed.", "Start `sluiced metadata` on the node; see its log."},
		{Waiting, metadata, notReady, "With `metadata.securityGroups: respect`: sluiced has started, and the Northbound database, whose ACLs say who may ask, has not answered since. What was served before stays served, and nothing new is; after four minutes ports of whose ACLs nothing is known are left to OVN.", "See the component `nb`."},
		{Broken, metadata, notReady, "The proxy's namespace, or the program on the way to it, is not as it was made, and cannot be made again.", "Remove what the detail names: a foreign device or namespace with the name."},
		{StartFailed, metadata, notReady, "Metadata could not be started, which is tried again every 5 seconds. What is pinned goes on.", "See the detail: a foreign device or namespace, a missing capability or kernel option."},
		{Idle, metadata, ready, "`metadata.backend` is `none`, or `metadata.enabled` is false: nothing is steered.", nothing},
		{Serving, clients, ready, "What VMs here send to VIPs is balanced on their taps.", nothing},
		{Idle, clients, ready, "It is left to OVN: `loadBalancing.enabled` or `loadBalancing.clients` is false.", nothing},
		{Waiting, clients, ready, "sluiced has started, and one of the databases of OVN has not answered since. What was balanced before is, and nothing new.", "See the components `sb` and `nb`."},
		{Rebuilding, clients, notReady, "An earlier start left programs of another build or with other constants, which go on until this start's are loaded; or maps of another layout, which go on until the new ones are filled: when all databases are in sync, and taps are there.", "Wait; if it stays, see what is not in sync."},
		{StartFailed, clients, notReady, "It could not be started, which is tried again every 5 seconds. What is pinned goes on.", "See the detail: a missing capability or kernel option, another sluiced."},
		{Leftovers, clients, notReady, "It is off, and something of the time when it was on cannot be removed.", "See the detail; `sluicectl cleanup` after stopping sluiced removes the same."},
		{Serving, drain, ready, "The node was drained, and announces its routes again.", nothing},
	}
}
