package evpn_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// late is how many milliseconds after OVN's move a packet towards the dead node means
// that nothing took its routes' place. The goal is 100; a test that shares its
// processors with others prints it, and fails where it is not a matter of them.
const late = 1000

// The active gateway chassis dies without a word: the other one takes its traffic
// as soon as OVN gives it the ports, although nobody withdraws the dead one's
// routes. "sluice-lab outage" kills it, and prints for how long traffic was away and
// OVN's share of that.
func TestChassisDeath(t *testing.T) {
	w := own(t, lab.EVPN(lab.EVPNParams{Compute: true}), "")
	w.connected()
	var b strings.Builder
	cmd := lab.NewCommand()
	cmd.SetOut(&b)
	cmd.SetArgs([]string{"--name", w.Name(), "outage", "a1"})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Log(b.String())
	for _, want := range []string{
		`b-red1 to 10\.10\.0\.11: no answer for \d+ ms`, `b-red1 to fd00:10::11: no answer for \d+ ms`,
		`a1 died; OVN had its gateway ports elsewhere after \d+ ms`, `the longest outage was \d+ ms, -?\d+ ms more than OVN's share`,
	} {
		if !regexp.MustCompile(want).MatchString(b.String()) {
			t.Errorf("it does not print %s", want)
		}
	}
	last := regexp.MustCompile(`tunnel endpoint was sent (-?\d+) ms after`).FindStringSubmatch(b.String())
	if last == nil {
		t.Fatal("it does not print when the last packet went to the dead node")
	}
	if ms, err := strconv.Atoi(last[1]); err != nil || ms > late {
		t.Errorf("packets went to the dead node until %s ms after OVN's move", last[1])
	}
	w.reach("a-red1", addrB4, addrB6)
	w.reach("b-blue1", addrA4, addrA6)
	w.announced("a2", vniRed, "10.10.0.11/32", "fd00:10::11/128")
}
