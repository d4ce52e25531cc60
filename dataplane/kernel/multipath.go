package kernel

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// HashPolicy is the setting by which the kernel chooses among several next hops of
// a family. It holds for the whole node, so Sluice does not change it.
func HashPolicy(ipv6 bool) string {
	if ipv6 {
		return "net.ipv6.fib_multipath_hash_policy"
	}
	return "net.ipv4.fib_multipath_hash_policy"
}

// HashHasPorts tells whether the ports of a packet count when the kernel of the
// namespace chooses among several next hops, as they do on the eBPF path.
func HashHasPorts(ns netns.Namespace, ipv6 bool) (has bool, err error) {
	err = ns.Do(func() error {
		file := "/proc/sys/" + strings.ReplaceAll(HashPolicy(ipv6), ".", "/")
		policy, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading sysctl %s: %w", HashPolicy(ipv6), err)
		}
		fields := []byte("0")
		if strings.TrimSpace(string(policy)) == hashCustom {
			if fields, err = os.ReadFile(strings.TrimSuffix(file, "policy") + "fields"); err != nil {
				return fmt.Errorf("reading the fields of sysctl %s: %w", HashPolicy(ipv6), err)
			}
		}
		has, err = hashHasPorts(strings.TrimSpace(string(policy)), strings.TrimSpace(string(fields)))
		return err
	})
	return has, err
}

// Values of fib_multipath_hash_policy with which outer ports may count, and the
// bits of fib_multipath_hash_fields that stand for them: see the kernel's
// Documentation/networking/ip-sysctl.rst.
const (
	hashPorts  = "1"
	hashCustom = "3"
	portBits   = 0x0010 | 0x0020
)

func hashHasPorts(policy, fields string) (bool, error) {
	if policy != hashCustom {
		return policy == hashPorts, nil
	}
	bits, err := strconv.ParseUint(fields, 0, 32)
	if err != nil {
		return false, fmt.Errorf("fields of the hash: %w", err)
	}
	return bits&portBits != 0, nil
}
