package metadata_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

// While the proxy of a chassis is stopped, as SIGSTOP does it, the daemon goes on: a VM
// that comes is published, the other chassis answer, and when the proxy goes on it knows the
// VM.
func TestStoppedProxy(t *testing.T) {
	w := shared(t)
	proxy := w.process("m1", "metadata")
	if err := proxy.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = proxy.Signal(syscall.SIGCONT) }
	t.Cleanup(goOn)
	vm := red3("m1")
	w.add(vm)
	w.eventually("the VM is published", func() error {
		if all := w.identities(); !strings.Contains(all, vm.Instance) {
			return errors.New(all)
		}
		return nil
	})
	w.ownData("m-red2", "m-blue2") // of the other chassis
	w.eventually("sluiced answers", func() error {
		out, err := w.Exec(w.Context(), "m1", "sh", "-c", sluicectl()+" status || test $? = 3")
		if err == nil && strings.Contains(out, "has not returned") {
			err = errors.New(out)
		}
		return err
	})
	goOn()
	w.ownData(vm.Name, "m-red1", "m-blue1")
}
