package vm

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// A machine that did not come to its end is an error, whatever it printed.
func TestCutEnd(t *testing.T) {
	for _, tt := range []struct {
		name, raw, output string
		status            int
		fails             bool
	}{
		{name: "good", raw: "PASS\n\nsluice-vm-end abc 0\n", output: "PASS\n"},
		{name: "serial line", raw: "PASS\r\n\r\nsluice-vm-end abc 0\r\n", output: "PASS\n"},
		{name: "failed", raw: "FAIL\n\nsluice-vm-end abc 1\n", output: "FAIL\n", status: 1},
		{name: "no newline before", raw: "x\nsluice-vm-end abc 137\n", output: "x", status: 137},
		{name: "of another run", raw: "PASS\n\nsluice-vm-end abd 0\n", fails: true},
		{name: "within a line", raw: "say sluice-vm-end abc 0\n", fails: true},
		{name: "cut", raw: "PASS\n\nsluice-vm-end abc 1", fails: true},
		{name: "no status", raw: "PASS\n\nsluice-vm-end abc \n", fails: true},
		{name: "nothing", fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			output, status, err := cutEnd([]byte(tt.raw), "abc")
			if (err != nil) != tt.fails {
				t.Fatalf("error %v", err)
			}
			if !tt.fails && (string(output) != tt.output || status != tt.status) {
				t.Errorf("%q, %d; want %q, %d", output, status, tt.output, tt.status)
			}
		})
	}
}

func TestArchive(t *testing.T) {
	var b bytes.Buffer
	if err := (archive{"/a/b/file": {0o755, []byte("12345")}, "/init": {0o644, nil}}).writeTo(&b); err != nil {
		t.Fatal(err)
	}
	if b.Len()%4 != 0 {
		t.Errorf("%d bytes, not a multiple of 4", b.Len())
	}
	var names []string
	for rest := b.Bytes(); len(rest) > 0; {
		if string(rest[:6]) != "070701" {
			t.Fatalf("an entry begins with %q", rest[:6])
		}
		name, _, _ := bytes.Cut(rest[110:], []byte{0})
		size := 0
		if string(name) == "/a/b/file" {
			size = 8 // padded
		}
		names = append(names, string(name))
		rest = rest[(110+len(name)+1+3)&^3+size:]
	}
	if got := strings.Join(names, " "); got != "/a /a/b /a/b/file /init TRAILER!!!" {
		t.Errorf("entries %s", got)
	}
}

// A kernel that panics and a script that stops the machine have no result.
func TestMachineThatGoesAway(t *testing.T) {
	k, err := Debian(t.Context(), "../../tools/kernel.sh", "bookworm")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for name, script := range map[string]string{
		"panic":  "echo started; echo PASS; echo c >/proc/sysrq-trigger; sleep 1000",
		"reboot": "echo started; echo PASS; reboot -f; sleep 1000",
	} {
		t.Run(name, func(t *testing.T) {
			res, err := Guest{Kernel: k, Script: script, MemoryMiB: 256}.Run(ctx)
			if err == nil || !strings.Contains(err.Error(), "went away") || !strings.Contains(err.Error(), "started") {
				t.Errorf("status %d, error %v", res.Status, err)
			}
		})
	}
}
