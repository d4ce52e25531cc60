package capability

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestExplain(t *testing.T) {
	refused := fmt.Errorf("map vrfs: %w", syscall.EPERM)
	const all = 1<<BPF | 1<<Perfmon | 1<<NetAdmin
	for name, tt := range map[string]struct {
		has  Set
		err  error
		want string
	}{
		"all there":                  {all, refused, "map vrfs: operation not permitted"},
		"no CAP_BPF":                 {all &^ (1 << BPF), refused, "sluiced has no CAP_BPF; "},
		"CAP_SYS_ADMIN includes two": {1<<SysAdmin | 1<<NetAdmin, refused, "map vrfs: operation not permitted"},
		"and not the third":          {1 << SysAdmin, refused, "sluiced has no CAP_NET_ADMIN; "},
		"two":                        {1 << NetAdmin, fmt.Errorf("load: %w", syscall.EACCES), "sluiced has no CAP_BPF, no CAP_PERFMON; "},
		"another error":              {0, syscall.ENOSPC, "no space left on device"},
	} {
		err := tt.has.explain(tt.err, BPF, Perfmon, NetAdmin)
		if !strings.HasPrefix(err.Error(), tt.want) || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Set(0).explain(nil, BPF); err != nil {
		t.Errorf("no error: %v", err)
	}
}

// The set is the kernel's.
func TestEffective(t *testing.T) {
	text, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "CapEff:")
	word, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	want, err := strconv.ParseUint(word, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Effective(); err != nil || got != Set(want) {
		t.Errorf("%x, %v, want %x", got, err, want)
	}
}

func TestNames(t *testing.T) {
	for c, want := range map[Capability]string{BPF: "CAP_BPF", Perfmon: "CAP_PERFMON", NetAdmin: "CAP_NET_ADMIN", NetRaw: "CAP_NET_RAW", SysAdmin: "CAP_SYS_ADMIN", SysResource: "CAP_SYS_RESOURCE", 99: "capability 99"} {
		if c.String() != want {
			t.Errorf("%s, want %s", c, want)
		}
	}
}
