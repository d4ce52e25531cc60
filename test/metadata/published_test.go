package metadata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// With publishNetworks a network is in the key of its chassis while its requests are answered:
// it enters when they are, in both forms, and leaves before what answers them goes.
func TestPublishedNetworks(t *testing.T) {
	w := shared(t)
	for node, name := range map[string]string{"m1": "m-blue1", "m2": "m-blue2"} {
		t.Run(node, func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab, nova: w.nova}
			defer w.ownData(vms...)
			w.restartWith(node, append([]string{"publishNetworks: on"}, settings[node]...)...)
			defer w.restartWith(node, settings[node]...)
			red, blue := w.network("red").ID, w.network("blue").ID
			w.isPublished(node, red, blue)

			vm := w.vm(name)
			if err := w.DelVM(background, vm.Name); err != nil {
				t.Fatal(err)
			}
			w.eventually("what serves blue has gone", func() error {
				if w.serves(node, vm.Name) {
					return fmt.Errorf("it is there still")
				}
				// Looked at in this order: what has gone cannot be in the key any more.
				if got := w.published(node); slices.Contains(got, blue) {
					t.Errorf("nothing serves blue, and the key has %q", got)
				}
				return nil
			})
			w.isPublished(node, red)

			if err := w.AddVM(w.Context(), "m", vm); err != nil {
				t.Fatal(err)
			}
			w.isPublished(node, red, blue)
			for _, f := range families {
				if got, err := w.instance(question{vm: vm.Name, family: f}); err != nil || got != vm.Instance {
					t.Errorf("blue is in the key, and %s is told by %s: %q %v", vm.Name, f, got, err)
				}
			}

			// While the proxy is away nobody is answered.
			if err := w.process(node, "metadata").Stop(); err != nil {
				t.Fatal(err)
			}
			w.isPublished(node)
		})
	}
	w.eventually("the keys are gone", func() error {
		for _, node := range []string{"m1", "m2"} {
			if got := w.published(node); len(got) > 0 {
				return fmt.Errorf("%s has %q", node, got)
			}
		}
		return nil
	})
}

// published are the networks in the key of a chassis.
func (w *world) published(node string) []string {
	w.Helper()
	out, err := w.SB(background, "m", "--if-exists", "get", "Chassis", node, "external_ids:neutron-metadata-proxy-networks")
	if err != nil {
		w.Fatal(err)
	}
	return strings.FieldsFunc(strings.Trim(strings.TrimSpace(out), `"`), func(r rune) bool { return r == ',' })
}

// isPublished waits until these networks are in the key.
func (w *world) isPublished(node string, networks ...string) {
	w.Helper()
	slices.Sort(networks)
	w.eventually(fmt.Sprintf("the key of %s has %d networks", node, len(networks)), func() error {
		if got := w.published(node); !slices.Equal(got, networks) {
			return fmt.Errorf("it has %q", got)
		}
		return nil
	})
}

// serves tells whether the proxy of a node knows a port, from its tap or in a namespace.
func (w *world) serves(node, port string) bool {
	w.Helper()
	return strings.Contains(w.sh(node, `cat "$OVS_RUNDIR"/sluice/metadata/identities.json`), `"`+port+`"`)
}
