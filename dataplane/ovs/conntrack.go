package ovs

import (
	"fmt"
	"strconv"
	"strings"
)

// conntrackFixed are the first releases of each series whose userspace conntrack does not end
// ovs-vswitchd by an assertion (conn_update_state) when a connection that it translated is
// met again as one that it does not translate. Series before the first have no such release,
// those after the last do not have the assertion.
var conntrackFixed = map[[2]int]int{{2, 17}: 8, {3, 0}: 5, {3, 1}: 3, {3, 2}: 3}

// ConntrackFault says why connections may end ovs-vswitchd on this node, or is empty: the
// userspace datapath of a release whose conntrack has an assertion that they meet. It is not
// for ever: another version may be started.
func (s *Switch) ConntrackFault() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bridges[s.integration].DatapathType != "netdev" || !conntrackFails(s.version) {
		return ""
	}
	return fmt.Sprintf("ovs-vswitchd %s has a fault in its userspace conntrack by which a connection can end it (assertion conn_update_state); update Open vSwitch to 2.17.8, 3.0.5, 3.1.3, 3.2.3, or 3.3 and later", s.version)
}

// conntrackFails tells whether a release has the assertion. What cannot be read has not.
func conntrackFails(version string) bool {
	var v [3]int
	for i, word := range strings.SplitN(version, ".", 3) {
		// What a distribution adds comes after the numbers.
		end := strings.IndexFunc(word, func(r rune) bool { return r < '0' || r > '9' })
		if end < 0 {
			end = len(word)
		}
		n, err := strconv.Atoi(word[:end])
		if err != nil {
			return false
		}
		v[i] = n
	}
	series := [2]int{v[0], v[1]}
	if fixed, ok := conntrackFixed[series]; ok {
		return v[2] < fixed
	}
	return series[0] < 3 && series[0] > 0
}
