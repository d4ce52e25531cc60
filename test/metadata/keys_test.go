package metadata_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// Neutron knows a metadata agent by keys of Chassis_Private, and that it lives by one
// that follows SB_Global.nb_cfg.
func TestNeutronSeesALivingAgent(t *testing.T) {
	w := shared(t)
	for _, node := range []string{"m1", "m2"} {
		id := w.key(node, "neutron:ovn-metadata-id")
		if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(id) {
			t.Errorf("%s: the agent's id is %q", node, id)
		}
		if got := w.key(node, "neutron:ovn-bridge"); got != "br-int" {
			t.Errorf("%s: the agent's bridge is %q", node, got)
		}
		for range 2 {
			w.nb("--wait=sb", "sync") // counts nb_cfg up
			w.eventually("the agent on "+node+" follows nb_cfg", func() error {
				out, err := w.SB(t.Context(), "m", "--bare", "--columns=nb_cfg", "list", "SB_Global")
				if want := strings.TrimSpace(out); err == nil && w.key(node, "neutron:ovn-metadata-sb-cfg") != want {
					err = fmt.Errorf("it is at %q, nb_cfg at %s", w.key(node, "neutron:ovn-metadata-sb-cfg"), want)
				}
				return err
			})
		}
		restart(node, "sluiced")(w)
		w.ownData(vms...)
		if again := w.key(node, "neutron:ovn-metadata-id"); again != id {
			t.Errorf("%s: after a restart it is the agent %q, before %q", node, again, id)
		}
	}
}

func (w *world) key(node, name string) string {
	w.Helper()
	out, err := w.SB(w.Context(), "m", "--if-exists", "get", "Chassis_Private", node, "external_ids:"+strings.ReplaceAll(name, ":", `\:`))
	if err != nil {
		w.Fatal(err)
	}
	return strings.Trim(strings.TrimSpace(out), `"`)
}
