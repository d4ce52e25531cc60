package ebpf

import "structs"

// skbContext is struct __sk_buff of <linux/bpf.h>. PROG_TEST_RUN takes the named
// fields from it; the blank ones have to be 0.
type skbContext struct {
	_       structs.HostLayout
	_       [10]uint32 // len .. ingress_ifindex
	IfIndex uint32
	_       [30]uint32 // tc_index .. wire_len
	GSOSegs uint32
	_       [2]uint32 // sk
	GSOSize uint32
	_       [3]uint32 // tstamp_type, hwtstamp
}
