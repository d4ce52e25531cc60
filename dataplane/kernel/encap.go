package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// The kinds and attributes of a route's tunnel key (linux/lwtunnel.h). Those of
// IPv4 and IPv6 have the same numbers.
const (
	encapIP4 = 2 // LWTUNNEL_ENCAP_IP
	encapIP6 = 4 // LWTUNNEL_ENCAP_IP6

	attrID    = 1 // LWTUNNEL_IP_ID
	attrDst   = 2
	attrSrc   = 3
	attrTTL   = 4
	attrTOS   = 5
	attrFlags = 6
)

// The flags of a tunnel key (linux/if_tunnel.h).
const (
	tunnelChecksum     = 0x0001 // TUNNEL_CSUM
	tunnelDontFragment = 0x0100 // TUNNEL_DONT_FRAGMENT
)

// outerTTL is the TTL or hop limit of outer packets, that of the eBPF path.
const outerTTL = 64

// tunnelKey is what a route gives its packets for a device in external mode.
type tunnelKey struct {
	vni      intent.VNI
	src, dst netip.Addr
	ttl, tos uint8
	flags    uint16
}

var _ netlink.Encap = (*tunnelKey)(nil)

func (k *tunnelKey) Type() int {
	if k.dst.Is4() {
		return encapIP4
	}
	return encapIP6
}

// Encode writes the nested attributes of RTA_ENCAP.
func (k *tunnelKey) Encode() ([]byte, error) {
	if k.src.Is4() != k.dst.Is4() {
		return nil, fmt.Errorf("tunnel from %s to %s: addresses of two families", k.src, k.dst)
	}
	var out []byte
	for _, a := range []struct {
		kind  int
		value []byte
	}{
		{attrID, binary.BigEndian.AppendUint64(nil, uint64(k.vni))},
		{attrDst, k.dst.AsSlice()},
		{attrSrc, k.src.AsSlice()},
		{attrTTL, []byte{k.ttl}},
		{attrTOS, []byte{k.tos}},
		{attrFlags, binary.BigEndian.AppendUint16(nil, k.flags)},
	} {
		out = append(out, nl.NewRtAttr(a.kind, a.value).Serialize()...)
	}
	return out, nil
}

var errEncap = errors.New("malformed tunnel key of a route")

// Decode reads what Encode writes, and what the kernel adds to it.
func (k *tunnelKey) Decode(b []byte) error {
	attrs, err := parseAttrs(b)
	if err != nil {
		return errEncap
	}
	var out tunnelKey
	for _, a := range attrs {
		v, ok := a.Value, true
		switch a.Attr.Type &^ unix.NLA_F_NESTED {
		case attrID:
			if ok = len(v) == 8; ok {
				out.vni = intent.VNI(binary.BigEndian.Uint64(v))
			}
		case attrDst:
			out.dst, ok = netip.AddrFromSlice(v)
		case attrSrc:
			out.src, ok = netip.AddrFromSlice(v)
		case attrTTL:
			if ok = len(v) == 1; ok {
				out.ttl = v[0]
			}
		case attrTOS:
			if ok = len(v) == 1; ok {
				out.tos = v[0]
			}
		case attrFlags:
			if ok = len(v) == 2; ok {
				out.flags = binary.BigEndian.Uint16(v)
			}
		}
		if !ok {
			return errEncap
		}
	}
	*k = out
	return nil
}

func (k *tunnelKey) String() string {
	return fmt.Sprintf("vni %d src %s dst %s ttl %d tos %d flags %#x", k.vni, k.src, k.dst, k.ttl, k.tos, k.flags)
}

// Equal compares all but what only the other knows.
func (k *tunnelKey) Equal(e netlink.Encap) bool {
	o, ok := e.(*tunnelKey)
	return ok && *o == *k
}
