package schema

import _ "embed" // the schema files

// Southbound is OVN_Southbound.
//
//go:embed ovn-sb.ovsschema
var Southbound []byte

// Northbound is OVN_Northbound.
//
//go:embed ovn-nb.ovsschema
var Northbound []byte

// VSwitch is Open_vSwitch.
//
//go:embed vswitch.ovsschema
var VSwitch []byte
