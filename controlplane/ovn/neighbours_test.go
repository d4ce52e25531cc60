package ovn

import (
	"fmt"
	"slices"
	"testing"
)

// TestFollowerNeighbours: the neighbours that routers learned under the next-hop
// MAC come and go with their rows; those under other MACs never come.
func TestFollowerNeighbours(t *testing.T) {
	const ours = "02:53:4c:55:49:43"
	l := newLab(t)
	l.provider("public", "physnet1")
	l.tenant(1, "public", "a1")
	learn := func(ip, mac string) string {
		router := l.sb("--bare", "--columns=datapath", "find", "Port_Binding", "logical_port=gw-r1")
		return l.sb("create", "MAC_Binding", "logical_port=gw-r1", fmt.Sprintf("ip=%q", ip), fmt.Sprintf("mac=%q", mac), "datapath="+router)
	}
	learn("172.24.4.254", ours)
	w := l.follow(Config{Needs: Needs{NextHopMAC: ours}})
	until := func(what string, want ...string) {
		w.until(what, func() bool {
			var got []string
			w.View(func(r *Rows) {
				for _, a := range r.Neighbours("gw-r1") {
					got = append(got, a.String())
				}
			})
			return slices.Equal(got, want)
		})
	}
	until("what was learned before", "172.24.4.254")
	learn("172.24.4.9", "02:00:00:00:00:99")
	row := learn("2001:db8:ff::fe", ours)
	until("another family", "172.24.4.254", "2001:db8:ff::fe")
	l.sb("destroy", "MAC_Binding", row)
	until("the neighbour forgotten", "172.24.4.254")
	first := l.sb("--bare", "--columns=_uuid", "find", "MAC_Binding", "ip=172.24.4.254")
	l.sb("set", "MAC_Binding", first, "mac=\"02:00:00:00:00:98\"")
	until("another MAC")
}
