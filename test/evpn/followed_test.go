package evpn_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// A change of OVN is followed through the log by the number of its event, in the order of "A change,
// followed through" (ARCHITECTURE.md): it is taken, the tables are told, its routes are programmed,
// and announced.
func TestAChangeFollowedThrough(t *testing.T) {
	w := shared(t)
	neighbor := fmt.Sprintf("    - address: %s\n", w.node("rr").VTEP4)
	w.startAt("b1", neighbor, "log:\n  level: debug\n")
	port := lab.GatewaySwitchPort("blue")
	w.Cleanup(func() { w.restore("blue", "2001") })
	w.clean()
	w.set("b", port, "vni", "abc")
	w.problem("b1", "bad-vni", "blue")
	file := w.process("b1", "sluiced").Log
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w.set("b", port, "vni", "2001")
	w.announced("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
	after, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := string(after[len(before):])
	number := regexp.MustCompile(`msg="a route is announced" event=(\d+) `)
	for _, route := range []string{"2001 10.20.0.11/32", "2001 fd00:20::11/128"} {
		at := strings.LastIndex(text, `route="`+route+`"`)
		line := text[strings.LastIndex(text[:max(at, 0)], "\n")+1:]
		found := number.FindStringSubmatch(line)
		if at < 0 || found == nil {
			t.Errorf("%s is not announced in\n%s", route, text)
			continue
		}
		var stages []string
		for line := range strings.Lines(text) {
			ofEvent := strings.Contains(strings.TrimSpace(line)+" ", " event="+found[1]+" ")
			ofRoute := strings.Contains(line, ` route="`+route+`"`) || !strings.Contains(line, " route=")
			if _, message, is := strings.Cut(line, ` msg="`); is && ofEvent && ofRoute {
				message, _, _ = strings.Cut(message, `"`)
				stages = append(stages, message)
			}
		}
		want := []string{"an event of OVN is taken", "the tables are told of a change", "a route is programmed", "a route is announced"}
		if !slices.Equal(stages, want) {
			t.Errorf("%s, event %s: %q in\n%s", route, found[1], stages, text)
		}
	}
	w.startAt("b1", neighbor, "")
}
