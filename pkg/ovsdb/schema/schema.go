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

// Southbound2303 is OVN_Southbound of OVN 23.03, the oldest that Sluice works with.
//
//go:embed ovn-sb-23.03.ovsschema
var Southbound2303 []byte

// Northbound2303 is OVN_Northbound of OVN 23.03.
//
//go:embed ovn-nb-23.03.ovsschema
var Northbound2303 []byte
