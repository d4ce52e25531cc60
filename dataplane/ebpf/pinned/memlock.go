package pinned

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/capability"
)

// LiftMemlock lifts the limit on locked memory where the kernel counts maps against it: before 5.11.
// It finds that out by making a map, so a process that may make none seems to have such a kernel, and
// the error names that.
func LiftMemlock() error {
	err := rlimit.RemoveMemlock()
	if err == nil {
		return nil
	}
	if has, failed := capability.Effective(); failed == nil && !has.Has(capability.BPF) && errors.Is(err, unix.EPERM) {
		return fmt.Errorf("make a map: %w", unix.EPERM)
	}
	return capability.Explain(fmt.Errorf("lift the limit on locked memory: %w", err), capability.SysResource)
}
