// Package ovn follows what Open Virtual Network knows: its Southbound database,
// the node's own Open vSwitch database and, where the node is given one, the
// Northbound database.
//
// It owns the sessions to these databases, the rule which rows this node needs
// ([Discover]), and plain copies of these rows with the columns that Sluice
// reads ([Rows]). Features read Rows; they never see the wire or its library.
//
// Promises:
//   - Rows hold what the conditions select, no more: conditions grow with what
//     the rows refer to, and shrink again.
//   - In sync means a fixpoint: every condition that the rows ask for has been
//     answered. See [Event].
//   - A lost connection changes no row. The database is merely not in sync
//     until it is back and the difference has been applied.
//   - Events come from one goroutine, in order, and name the routers that a
//     change touches. What the vswitch database alone says of the node is told
//     before there are any (Config.Local).
//   - Another reader of the vswitch database shares its session: it has each batch before
//     an event does, and waits for none (Config.VSwitchHandler, Transact).
//
// It never writes to the Northbound database, and to the Southbound database only keys
// of external_ids of this chassis: sluice-* in Chassis_Private, and where it is told to
// (PublishMetadata) those of Neutron's metadata agent there, and the list of networks in
// Chassis.
package ovn
