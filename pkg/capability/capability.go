// Package capability says which capabilities (capabilities(7)) the process lacks, so that a refusal
// of the kernel can be told with the name of what is missing.
//
// It reads the effective set of the calling thread; all threads of a Go program have the same one.
// It changes nothing.
package capability

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Capability is one of those that sluiced may need.
type Capability int

// Capabilities by what they allow here: see deploy/systemd/sluiced.service.
const (
	BPF         Capability = unix.CAP_BPF
	Perfmon     Capability = unix.CAP_PERFMON
	NetAdmin    Capability = unix.CAP_NET_ADMIN
	NetRaw      Capability = unix.CAP_NET_RAW
	SysAdmin    Capability = unix.CAP_SYS_ADMIN
	SysResource Capability = unix.CAP_SYS_RESOURCE
)

// String is the name as capabilities(7) has it.
func (c Capability) String() string {
	switch c {
	case BPF:
		return "CAP_BPF"
	case Perfmon:
		return "CAP_PERFMON"
	case NetAdmin:
		return "CAP_NET_ADMIN"
	case NetRaw:
		return "CAP_NET_RAW"
	case SysAdmin:
		return "CAP_SYS_ADMIN"
	case SysResource:
		return "CAP_SYS_RESOURCE"
	}
	return fmt.Sprintf("capability %d", int(c))
}

// Set has the bit 1<<c of each capability.
type Set uint64

// Effective is the set of the process.
func Effective() (Set, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("read the capabilities of the process: %w", err)
	}
	return Set(data[0].Effective) | Set(data[1].Effective)<<32, nil
}

// Has tells whether a set allows what c allows: CAP_SYS_ADMIN includes CAP_BPF and CAP_PERFMON.
func (s Set) Has(c Capability) bool {
	return s&(1<<c) != 0 || (c == BPF || c == Perfmon) && s&(1<<SysAdmin) != 0
}

// Lacks are those of needs that the set does not allow.
func (s Set) Lacks(needs ...Capability) (names []string) {
	for _, c := range needs {
		if !s.Has(c) {
			names = append(names, c.String())
		}
	}
	return names
}

// Explain names in a refusal of the kernel those of needs that the process lacks. Another error, and
// one of a process that has them all, stays as it is.
func Explain(err error, needs ...Capability) error {
	s, failed := Effective()
	if failed != nil {
		return err
	}
	return s.explain(err, needs...)
}

func (s Set) explain(err error, needs ...Capability) error {
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) {
		return err
	}
	lacks := s.Lacks(needs...)
	if len(lacks) == 0 {
		return err
	}
	return fmt.Errorf("sluiced has no %s; give it the capabilities that the unit and the DaemonSet list: %w", strings.Join(lacks, ", no "), err)
}
