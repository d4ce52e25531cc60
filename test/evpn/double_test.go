package evpn_test

import (
	"fmt"
	"strings"
	"testing"
)

// Two nodes with one router ID: both have the problem, and explain names it in both families.
func TestExplainNamesTheSameRouterID(t *testing.T) {
	w := shared(t)
	rr := w.node("rr")
	defer func() {
		for _, node := range []string{"a1", "b1"} {
			w.configured(node, fmt.Sprintf("    - address: %s\n", rr.VTEP4))
		}
	}()
	for _, node := range []string{"a1", "b1"} {
		// What stands in the place of the neighbours may have more keys behind it.
		w.configured(node, fmt.Sprintf("    - address: %s\n  routerID: 10.255.255.1\n", rr.VTEP4))
	}
	for _, node := range []string{"a1", "b1"} {
		w.hasProblem(node, "vtep", "same-router-id", true, "10.255.255.1")
	}
	for src, dst := range map[string]string{addrA4: addrB4, addrA6: addrB6} {
		out := w.exec("a1", "sh", "-c", fmt.Sprintf("%s explain --vrf %d %s %s; true", sluicectl(), vniRed, src, dst))
		if !strings.Contains(out, "same-router-id: router ID 10.255.255.1 is also used by") {
			t.Errorf("explain %s %s: %s", src, dst, out)
		}
	}
}
