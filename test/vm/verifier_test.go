package vm_test

import (
	"bufio"
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/test/vm"
)

// recordFile holds what the verifier of each kernel did to accept each program,
// when somebody last looked at it: kernel, program, instructions, states, and
// states at one time. SLUICE_RECORD=1 writes it anew.
const recordFile = "verifier.txt"

type verified struct{ kernel, program string }

// effort is instructions, states in all, states at one time.
type effort [3]int

var effortNames = [3]string{"instructions", "states", "states at one time"}

// verifierTest is that of test/bpf which loads every program and prints what that cost the verifier.
const verifierTest = "TestVerifier"

// TestVerifier fails where the verifier of this kernel works harder for a program than test/bpf allows.
// TestMatrix does so for the kernels of its machines; SLUICE_RECORD boots them here, and records all.
func TestVerifier(t *testing.T) {
	s := suite{pkg: "../bpf"}
	out, err := exec.Command(s.binary(t), "-test.v", "-test.run", "^"+verifierTest+"$").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	now := verifiedBy(t, thisKernel(t), string(out))
	if os.Getenv("SLUICE_RECORD") == "" {
		compare(t, now)
		return
	}
	var mu sync.Mutex
	t.Run("kernels", func(t *testing.T) {
		each(t, func(t *testing.T, r row, k vm.Kernel) {
			found := verifiedBy(t, r.kernel, run(t, vm.Guest{
				Kernel: k, Files: map[string]string{"bpf.test": s.binary(t)}, Script: "./bpf.test -test.v -test.run '^" + verifierTest + "$'\n",
			}))
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(now, found)
		})
	})
	if t.Failed() {
		return
	}
	recorded, err := readRecord()
	if err != nil {
		t.Fatal(err)
	}
	maps.Copy(recorded, now)
	if err := writeRecord(recorded, now); err != nil {
		t.Fatal(err)
	}
}

// verifiedBy reads what the programs cost a kernel's verifier.
func verifiedBy(t *testing.T, kernel, out string) map[verified]effort {
	t.Helper()
	found := parseVerified(kernel, out)
	if len(found) == 0 {
		t.Errorf("no statistics of the verifier of %s:\n%s", kernel, out)
	}
	return found
}

// compare reports what has changed since somebody last recorded it.
func compare(t *testing.T, now map[verified]effort) {
	t.Helper()
	recorded, err := readRecord()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range sortedVerified(now) {
		report(t, "kernel %s, %s: %s", v.kernel, v.program, now[v].against(recorded[v]))
	}
}

func (e effort) against(was effort) string {
	var b strings.Builder
	for i, n := range e {
		fmt.Fprintf(&b, ", %d %s", n, effortNames[i])
		if was[i] != 0 {
			fmt.Fprintf(&b, " (%+d%%)", (n-was[i])*100/was[i])
		}
	}
	return b.String()[2:]
}

var verifiedRE = regexp.MustCompile(`verified (\S+) (\d+) (\d+) (\d+)\n`)

func parseVerified(kernel, out string) map[verified]effort {
	all := map[verified]effort{}
	for _, m := range verifiedRE.FindAllStringSubmatch(out, -1) {
		var e effort
		for i := range e {
			fmt.Sscan(m[i+2], &e[i])
		}
		all[verified{kernel, m[1]}] = e
	}
	return all
}

// thisKernel is the running kernel's version, such as 6.18.
func thisKernel(t *testing.T) string {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	parts := strings.SplitN(unix.ByteSliceToString(u.Release[:]), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

func readRecord() (map[verified]effort, error) {
	f, err := os.Open(recordFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all := map[verified]effort{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := lines.Text()
		if strings.HasPrefix(line, "#") {
			continue
		}
		var v verified
		var e effort
		if _, err := fmt.Sscan(line, &v.kernel, &v.program, &e[0], &e[1], &e[2]); err != nil {
			return nil, fmt.Errorf("%s: %q: %w", recordFile, line, err)
		}
		all[v] = e
	}
	return all, nil
}

// writeRecord keeps what is recorded of other kernels, but not of programs that
// are no more.
func writeRecord(recorded, now map[verified]effort) error {
	programs := map[string]bool{}
	for v := range now {
		programs[v.program] = true
	}
	var b strings.Builder
	b.WriteString("# What the verifier of a kernel did to accept a program. Written by SLUICE_RECORD=1 go test -run TestVerifier ./test/vm\n")
	b.WriteString("# kernel program instructions states states-at-one-time\n")
	for _, v := range sortedVerified(recorded) {
		if e := recorded[v]; programs[v.program] {
			fmt.Fprintf(&b, "%s %s %d %d %d\n", v.kernel, v.program, e[0], e[1], e[2])
		}
	}
	return os.WriteFile(recordFile, []byte(b.String()), 0o644)
}

func sortedVerified(all map[verified]effort) []verified {
	return slices.SortedFunc(maps.Keys(all), func(a, b verified) int {
		return cmp.Or(strings.Compare(a.kernel, b.kernel), strings.Compare(a.program, b.program))
	})
}
