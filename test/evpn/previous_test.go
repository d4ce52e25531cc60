//go:build !guest

package evpn_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// previousCommit is a variable of the environment that names the commit whose sluiced is
// the older one.
const previousCommit = "SLUICE_PREVIOUS"

// release is a build of sluiced.
type release struct {
	// version is in what it says of its version.
	binary, version string
	// what says which commit it is, and why that one.
	what string
}

// programPaths are what sluiced is built of.
var programPaths = []string{"cmd", "pkg", "controlplane", "dataplane", "version.go", "go.mod", "go.sum"}

// repository is a directory with a checkout.
type repository string

// git runs it there; its answer is without the last newline.
func (r repository) git(args ...string) (string, error) {
	// A checkout may be another user's than root.
	cmd := exec.Command("git", append([]string{"-c", "safe.directory=" + string(r), "-C", string(r)}, args...)...)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(problem.String()))
	}
	return strings.TrimSpace(string(out)), err
}

// previous is the last commit with another sluiced than the one under test:
// HEAD when the checkout has changes, otherwise the parent of the last commit that
// changed what sluiced is built of. A shallow clone may not have it: then the oldest
// commit that is there, if it has another sluiced, and then HEAD itself.
func (r repository) previous() (commit, why string, err error) {
	if commit = os.Getenv(previousCommit); commit != "" {
		commit, err = r.git("rev-parse", "--verify", commit+"^{commit}")
		return commit, previousCommit + " names it", err
	}
	head, err := r.git("rev-parse", "--verify", "HEAD^{commit}")
	if err != nil {
		return "", "", err
	}
	same := func(commit string) bool {
		_, err := r.git(append([]string{"diff", "--quiet", commit, "--"}, programPaths...)...)
		return err == nil
	}
	if !same(head) {
		return head, "the checkout has changes", nil
	}
	last, err := r.git(append([]string{"log", "-1", "--format=%H", "--"}, programPaths...)...)
	if err != nil {
		return "", "", err
	}
	if parent, err := r.git("rev-parse", "--verify", last+"^"); err == nil {
		return parent, "the last commit with another sluiced", nil
	}
	roots, err := r.git("rev-list", "--max-parents=0", "HEAD")
	if err != nil {
		return "", "", err
	}
	if oldest := strings.Fields(roots)[0]; !same(oldest) {
		return oldest, "the oldest commit of a shallow clone", nil
	}
	return head, "NO OTHER COMMIT IS HERE (a shallow clone): HEAD is compared with itself under another version", nil
}

// beforeLayout is the parent of the last commit that changed the maps' types.
func (r repository) beforeLayout() (commit, why string, err error) {
	last, err := r.git("log", "-1", "--format=%H", "--", "dataplane/ebpf/maps_bpfel.go")
	if err != nil {
		return "", "", err
	}
	commit, err = r.git("rev-parse", "--verify", last+"^")
	return commit, "the last commit with other maps", err
}

// older builds sluiced of an earlier commit, once: the build is kept in the cache.
func older(t *testing.T, choose func(repository) (commit, why string, err error)) release {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatalf("the older sluiced is built of the repository's history: %v", err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	here := repository(root)
	commit, why, err := choose(here)
	if err != nil {
		t.Fatal(err)
	}
	title, err := here.git("log", "-1", "--format=%h %s", commit)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := filepath.Abs(filepath.Join(cmp.Or(os.Getenv("SLUICE_CACHE"), "../../.cache"), "previous"))
	if err != nil {
		t.Fatal(err)
	}
	r := release{version: "previous-" + commit[:12], what: why + ": " + title, binary: filepath.Join(cache, commit, "sluiced")}
	begin := time.Now()
	if err := r.build(here, cache, commit); err != nil {
		t.Fatalf("sluiced of %s: %v", r.what, err)
	}
	t.Logf("the older sluiced is of %s; built in %.1f s", r.what, time.Since(begin).Seconds())
	return r
}

// build makes the binary unless it is there, with the flags of "make build": what
// both commits share comes from the go command's cache.
func (r release) build(here repository, cache, commit string) error {
	if _, err := os.Stat(r.binary); err == nil {
		return nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(cache, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	source, tree := filepath.Join(dir, "source"), filepath.Join(dir, "source.tar")
	if _, err := here.git("archive", "--format=tar", "--output="+tree, commit); err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(source, 0o755), say(exec.Command("tar", "-x", "-C", source, "-f", tree))); err != nil {
		return err
	}
	target := filepath.Join(dir, "build")
	// Commits before the file VERSION have main.version.
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-X github.com/ovn-sluice/sluice.commit="+r.version+" -X main.version="+r.version,
		"-o", filepath.Join(target, "sluiced"), "./cmd/sluiced")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if err := say(build); err != nil {
		return err
	}
	// One earlier build after the other would fill the cache.
	kept, err := filepath.Glob(filepath.Join(cache, "[0-9a-f]*"))
	if err != nil {
		return err
	}
	for _, k := range kept {
		if at, err := os.Stat(k); err == nil && time.Since(at.ModTime()) > 24*time.Hour {
			_ = os.RemoveAll(k)
		}
	}
	return os.Rename(target, filepath.Dir(r.binary))
}

// say runs a command, whose error comes with what it said.
func say(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, tail(string(out), 2000))
	}
	return nil
}

// Which commit is the older one, in clones of all depths.
func TestPreviousCommit(t *testing.T) {
	full := repository(t.TempDir())
	run := func(r repository, args ...string) string {
		t.Helper()
		out, err := r.git(append([]string{"-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	write := func(r repository, file, text string) {
		t.Helper()
		path := filepath.Join(string(r), file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	commit := func(file, text string) string {
		t.Helper()
		write(full, file, text)
		run(full, "add", "-A")
		run(full, "commit", "-q", "-m", text)
		return run(full, "rev-parse", "HEAD")
	}
	t.Setenv(previousCommit, "")
	run(full, "init", "-q")
	first := commit("cmd/main.go", "first")
	commit("cmd/main.go", "second")
	head := commit("docs/a.md", "third")
	clone := func(depth string) repository {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "clone")
		run(full, "clone", "-q", "--depth", depth, "file://"+string(full), dir)
		return repository(dir)
	}
	one, two := clone("1"), clone("2")
	changed := clone("3")
	write(changed, "cmd/main.go", "not committed")
	for _, c := range []struct {
		name       string
		r          repository
		want, word string
	}{
		{"all of it", full, first, "another sluiced"}, {"three commits", clone("3"), first, "another sluiced"},
		{"two with the same sluiced", two, head, "NO OTHER COMMIT"}, {"one", one, head, "NO OTHER COMMIT"},
		{"changes", changed, head, "has changes"},
	} {
		if got, why, err := c.r.previous(); got != c.want || !strings.Contains(why, c.word) || err != nil {
			t.Errorf("%s: %s (%s), %v; want %s (%s)", c.name, got, why, err, c.want, c.word)
		}
	}
	if _, _, err := repository(t.TempDir()).previous(); err == nil {
		t.Error("a directory that is no checkout has a previous commit")
	}
}
