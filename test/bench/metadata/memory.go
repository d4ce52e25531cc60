package metadata

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// memory is in bytes.
type memory struct{ user, kernel int64 }

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

func (m memory) minus(o memory) memory { return memory{m.user - o.user, m.kernel - o.kernel} }

// settled is the least of some readings: what a process or the kernel is about to give
// back is not what it needs.
func (b *bench) settled(ctx context.Context, pids []int) (memory, error) {
	const readings = 5
	var least memory
	for i := range readings {
		if err := sleep(ctx, b.Settle/readings); err != nil {
			return memory{}, err
		}
		m, err := used(pids)
		if err != nil {
			return memory{}, err
		}
		if i == 0 {
			least = m
		}
		least = memory{min(least.user, m.user), min(least.kernel, m.kernel)}
	}
	return least, nil
}

func used(pids []int) (memory, error) {
	var m memory
	for _, pid := range pids {
		pss, err := fields(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss")
		if err != nil {
			return m, err
		}
		m.user += pss
	}
	var err error
	m.kernel, err = fields("/proc/meminfo", "SUnreclaim", "KernelStack", "PageTables", "Percpu", "VmallocUsed")
	return m, err
}

// fields is the sum of "NAME: N kB" lines of a file, in bytes.
func fields(file string, names ...string) (sum int64, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		_, rest, ok := strings.Cut("\n"+string(b), "\n"+name+":")
		if !ok {
			return 0, fmt.Errorf("%s has no %s", file, name)
		}
		n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %s: %w", file, name, err)
		}
		sum += n << 10
	}
	return sum, nil
}
