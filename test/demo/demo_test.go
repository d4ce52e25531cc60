package demo

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// make demo works from this checkout, beside a demo that somebody has left up, and make demo-down leaves
// the machine as it was.
func TestDemo(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("demo%d", os.Getpid()%100_000_000)
	mark := "DEMO_TEST=" + name // in the environment of all that it starts
	target := func(target string) string {
		cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", target, "SLUICE_LAB="+name)
		cmd.Dir, cmd.Env = root, append(os.Environ(), mark)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("make %s: %v\n%s", target, err, out)
		}
		return string(out)
	}
	// What is built or downloaded stays.
	if out, err := exec.CommandContext(t.Context(), "make", "-C", root, "deps-lab", "build").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	before := machineOf(t)

	said := target("demo")
	if !strings.Contains(said, "The lab stays up.") {
		t.Errorf("make demo said:\n%s", said)
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, "sluiced's programs") || strings.HasPrefix(line, "Up in") {
			t.Log(strings.TrimSpace(line))
		}
	}
	if l, err := lab.Open(lab.Options{Name: name}); err != nil {
		t.Error(err)
	} else if _, err := l.Exec(t.Context(), "a-red1", "ping", "-c3", "-W5", "10.20.0.11"); err != nil {
		t.Errorf("the lab that stays up: %v", err)
	}

	target("demo-down")
	after := machineOf(t)
	for kind, had := range before {
		for thing := range after[kind] {
			if !had[thing] {
				t.Errorf("%s left behind: %s", kind, thing)
			}
		}
		for thing := range had {
			if !after[kind][thing] {
				t.Errorf("%s taken away: %s", kind, thing)
			}
		}
	}
	left := processesOf(t, mark, "/"+name+"/")
	for deadline := time.Now().Add(time.Minute); len(left) > 0 && time.Now().Before(deadline); left = processesOf(t, mark, "/"+name+"/") {
		time.Sleep(100 * time.Millisecond) // a script's clock runs for a second more
	}
	for _, p := range left {
		t.Errorf("process left behind: %s", p)
	}
	if _, err := os.Stat(filepath.Join(lab.DefaultDir, name)); err == nil {
		t.Errorf("%s is left behind", filepath.Join(lab.DefaultDir, name))
	}
}

// machineOf is what a machine has: namespaces, links, mounts, and what is pinned in bpffs.
func machineOf(t *testing.T) map[string]map[string]bool {
	t.Helper()
	run := func(argv ...string) (out []string) {
		text, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", argv, err)
		}
		for line := range strings.Lines(string(text)) {
			out = append(out, strings.TrimSpace(line))
		}
		return out
	}
	set := func(list []string, of func(string) string) map[string]bool {
		out := map[string]bool{}
		for _, item := range list {
			out[of(item)] = true
		}
		return out
	}
	whole := func(s string) string { return s }
	field := func(n int) func(string) string { return func(s string) string { return strings.Fields(s)[n] } }
	mounts := slices.DeleteFunc(run("cat", "/proc/self/mountinfo"), func(m string) bool {
		return strings.HasPrefix(strings.Fields(m)[4], "/run/user/") // of a person who logs in
	})
	pins := map[string]bool{}
	for _, m := range mounts {
		if !strings.Contains(m, " - bpf ") {
			continue
		}
		if err := filepath.WalkDir(strings.Fields(m)[4], func(path string, _ os.DirEntry, err error) error {
			pins[path] = true
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return map[string]map[string]bool{
		"namespace": set(run("ip", "netns", "list"), field(0)),
		"link":      set(run("ip", "-o", "-br", "link"), field(0)),
		"mount":     set(mounts, field(4)),
		"pin":       pins,
		"lab":       set(run("sh", "-c", "ls "+lab.DefaultDir+" 2>/dev/null || true"), whole),
	}
}

// processesOf are the processes that have a mark in their environment, or words in their arguments.
func processesOf(t *testing.T, mark, words string) (out []string) {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		// A process may end meanwhile: it is none then.
		env, _ := os.ReadFile(filepath.Join(d, "environ"))
		args, _ := os.ReadFile(filepath.Join(d, "cmdline"))
		line := strings.ReplaceAll(string(args), "\x00", " ")
		if slices.Contains(strings.Split(string(env), "\x00"), mark) || strings.Contains(line, words) {
			out = append(out, filepath.Base(d)+" "+line)
		}
	}
	return out
}

func TestLossIsJudged(t *testing.T) {
	for text, want := range map[string]tallyOfPing{
		"1000 packets transmitted, 1000 received, 0% packet loss, time 5000ms":                                        {took: 5 * time.Second},
		"1000 packets transmitted, 930 received, 7% packet loss, time 5000ms":                                         {lost: 70, took: 5 * time.Second},
		"1000 packets transmitted, 990 received, +2 duplicates, +1 errors, 1% packet loss, time 1ms, pipe 3":          {lost: 10, wrong: "+2 duplicates, +1 errors", took: time.Millisecond},
		"PING x\n--- x ---\n1000 packets transmitted, 999 received, 0.1% packet loss, time 5ms\nrtt min/avg/max/mdev": {lost: 1, took: 5 * time.Millisecond},
	} {
		if got, err := readPing(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	if _, err := readPing("ping: unknown host"); err == nil {
		t.Error("no summary, and no error")
	}
	for _, row := range []struct {
		got, control tallyOfPing
		good         bool
	}{
		{tallyOfPing{}, tallyOfPing{}, true},
		{tallyOfPing{lost: 20}, tallyOfPing{}, true},
		{tallyOfPing{lost: 21}, tallyOfPing{}, false},
		{tallyOfPing{lost: 50}, tallyOfPing{lost: 30}, true},
		{tallyOfPing{lost: 51}, tallyOfPing{lost: 100}, false},
		{tallyOfPing{wrong: "+1 duplicates"}, tallyOfPing{}, false},
	} {
		if err := judge(killedPairs[0], row.got, row.control); (err == nil) != row.good {
			t.Errorf("%+v beside %+v: %v", row.got, row.control, err)
		}
	}
}
