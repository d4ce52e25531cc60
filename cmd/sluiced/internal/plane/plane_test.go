package plane

import (
	"syscall"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/capability"
)

// What the process has does not change the text of a failed start. test/rights takes each away.
func TestStartFailedWithAllCapabilities(t *testing.T) {
	if got := StartFailed(syscall.EPERM, capability.SysAdmin); got != syscall.EPERM.Error() {
		t.Error(got)
	}
}
