package link

import (
	"maps"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestLowerDevices(t *testing.T) {
	attrs := func(index, parent int) netlink.LinkAttrs { return netlink.LinkAttrs{Index: index, ParentIndex: parent} }
	got := lowerDevices([]netlink.Link{
		&netlink.Bridge{LinkAttrs: attrs(1, 0)}, &netlink.Vlan{LinkAttrs: attrs(2, 1)},
		&netlink.Macvlan{LinkAttrs: attrs(3, 1)}, &netlink.Veth{LinkAttrs: attrs(4, 5)}, &netlink.Veth{LinkAttrs: attrs(5, 4)},
	})
	if want := map[int]int{2: 1, 3: 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
