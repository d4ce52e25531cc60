package bareroot

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

//go:embed machine.sh
var machineScript string

// logFile has the whole output of the last run.
const logFile = "build/bareroot.log"

// A new machine runs both commands of the README, and what they make is small enough to say.
func TestBareRoot(t *testing.T) {
	root := repository(t)
	log, err := os.Create(filepath.Join(root, logFile))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	image, err := debian(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	// The end of make demo is its lab's; the caches stay for make test, as on a newcomer's machine.
	command := strings.Join([]string{
		timed("make demo"), `bin/sluice-lab list --name "$SLUICE_LAB" >/dev/null`, timed("make demo-down"), size("after make demo"),
		timed("make quick"), size("after make quick"),
	}, " && ")
	begin := time.Now()
	if err := run(t.Context(), image, root, command, log); err != nil {
		t.Fatalf("%v\n%s\nthe whole output: %s", err, tail(t, log.Name(), 60), logFile)
	}
	text := tail(t, log.Name(), 1<<20)
	for _, line := range regexp.MustCompile(`(?m)^#### .*$`).FindAllString(text, -1) {
		t.Log(line)
	}
	t.Logf("both commands: %d s", int(time.Since(begin).Seconds()))
	if noise := regexp.MustCompile(`(?m)^go: downloading .*$`).FindString(text); noise != "" {
		t.Errorf("downloads of modules are not quiet: %s", noise)
	}
	for _, want := range []string{"The lab stays up.", "make demo: ", "to download: "} {
		if !strings.Contains(text, want) {
			t.Errorf("the output does not have %q", want)
		}
	}
}

// timed is a command that tells how long it has taken.
func timed(command string) string {
	return fmt.Sprintf(`s=$(date +%%s) && %s && echo "#### %s: $(($(date +%%s) - s)) s"`, command, command)
}

// size is a command that tells the size of the caches.
func size(when string) string {
	return `echo "#### ` + when + `: $(du -shc "$SLUICE_CACHE" "$(go env GOMODCACHE)" "$(go env GOCACHE)" | tr '\t\n' '  ')"`
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "build"), 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// debian is the root directory of a Debian machine.
func debian(ctx context.Context, root string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(root, "tools", "bareroot.sh"), "bookworm")
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("a bare Debian: %w\n%s", err, problems.String())
	}
	return filepath.Join(strings.TrimSpace(string(out)), "root"), nil
}

// run runs a command on the new machine, with its output in log.
func run(ctx context.Context, image, tree, command string, log io.Writer) error {
	goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	place, err := os.MkdirTemp("", "sluice-bare-")
	if err != nil {
		return err
	}
	defer os.Remove(place)
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--propagation=private", "--pid", "--fork", "--kill-child", "--uts", "--ipc",
		"sh", "-euc", machineScript, "machine", image, place, tree, strings.TrimSpace(string(goroot)), command)
	if cmd.Env, err = environment(ctx); err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = time.Minute
	return cmd.Run()
}

// environment is that of the new machine's root. Where modules and packages come from is this machine's.
func environment(ctx context.Context) ([]string, error) {
	env := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/go/bin", "HOME=/root", "LC_ALL=C.UTF-8",
		"SLUICE_CACHE=/root/.cache/sluice", "SLUICE_LAB=bare",
	}
	for _, name := range []string{"GOPROXY", "GOSUMDB", "GONOSUMDB", "GOPRIVATE", "GOTOOLCHAIN"} {
		value, err := exec.CommandContext(ctx, "go", "env", name).Output()
		if err != nil {
			return nil, err
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	for _, name := range []string{"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"} {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env, nil
}

// tail is the end of a file.
func tail(t *testing.T, file string, lines int) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Split(string(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
