package metadata_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// VMs are told who they are though something else has the name of the proxy's namespace, which stays
// as it is: a start makes the namespace by another name, and the proxy serves it there.
func TestNameOfNamespaceTaken(t *testing.T) {
	w := shared(t)
	const vm, name = "m-red1", "sluice-metadata"
	node := w.vm(vm).Chassis
	w.ownData(vm)
	// without has a script run while no sluiced is there to make the namespace.
	without := func(script string) {
		t.Helper()
		p := w.process(node, "sluiced")
		if err := p.Stop(); err != nil {
			t.Fatal(err)
		}
		w.sh(node, strings.ReplaceAll(script, "AT", "/run/netns/"+name))
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
	}
	// made waits for the namespace: that of before answers until its last socket is closed.
	made := func(when, name string) {
		t.Helper()
		w.eventually(when+", and the namespace is "+name, func() error {
			if got := w.namespaces(node); !slices.Contains(got, name) {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
	}
	for _, form := range []struct{ name, take, stays, free string }{
		{"a directory", "mkdir AT", "test -d AT", "rmdir AT"},
		{"a dangling link", "ln -s AT-nowhere AT", "test -L AT -a ! -e AT", "rm AT"},
		{"a bind mount of a file", "touch AT; mount --bind /etc/hostname AT", "grep -q ' AT ' /proc/self/mountinfo", "umount AT; rm AT"},
		{"a namespace of somebody", "ip netns add " + name, "ip netns list | grep -qw " + name, "ip netns del " + name},
	} {
		without("ip netns del " + name + "; " + form.take)
		made(form.name+" has the name", name+"-2")
		w.ownData(vm)
		w.sh(node, strings.ReplaceAll(form.stays, "AT", "/run/netns/"+name))
		without(form.free + "; ip netns del " + name + "-2")
		made(form.name+" has gone", name)
		w.ownData(vm)
	}
}
