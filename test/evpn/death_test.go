package evpn_test

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// The active gateway chassis dies without a word: the other one takes its traffic
// as soon as OVN gives it the ports, although nobody withdraws the dead one's
// routes.
func TestChassisDeath(t *testing.T) {
	w := own(t, lab.EVPN(lab.EVPNParams{Compute: true}), "")
	w.connected()
	o, err := w.MeasureOutage(t.Context(), "a1")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := o.Print(&b); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	w.reach("a-red1", addrB4, addrB6)
	w.reach("b-blue1", addrA4, addrA6)
	w.announced("a2", vniRed, "10.10.0.11/32", "fd00:10::11/128")
}
