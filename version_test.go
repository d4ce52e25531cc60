package sluice

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"testing"
)

func TestCommit(t *testing.T) {
	const revision = "5cce9c1c0123456789abcdef0123456789abcdef"
	built := func(settings ...debug.BuildSetting) *debug.BuildInfo { return &debug.BuildInfo{Settings: settings} }
	for _, row := range []struct {
		got, want string
	}{
		{join("0.1.0\n", ""), "0.1.0"},
		{join("0.1.0-dev\n", "5cce9c1c-dirty"), "0.1.0-dev (5cce9c1c-dirty)"},
		{fromArchive("$Format:" + "%H$"), ""},
		{fromArchive(revision), "5cce9c1c"},
		{fromBuild(nil), ""},
		{fromBuild(built()), ""},
		{fromBuild(built(debug.BuildSetting{Key: "vcs.revision", Value: revision}, debug.BuildSetting{Key: "vcs.modified", Value: "false"})), "5cce9c1c"},
		{fromBuild(built(debug.BuildSetting{Key: "vcs.revision", Value: revision}, debug.BuildSetting{Key: "vcs.modified", Value: "true"})), "5cce9c1c-dirty"},
		{fromBuild(built(debug.BuildSetting{Key: "vcs.modified", Value: "true"})), ""},
	} {
		if row.got != row.want {
			t.Errorf("%q, not %q", row.got, row.want)
		}
	}
}

// run gives what a command says.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=true", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func TestVersionOfPrograms(t *testing.T) {
	programs := []string{"sluiced", "sluicectl", "sluice-controller", "sluice-lab"}
	run(t, ".", "tools/build.sh", programs...)
	for _, program := range programs {
		want := regexp.MustCompile(`^` + program + ` ` + regexp.QuoteMeta(strings.TrimSpace(number)) + ` \([0-9a-f]{8}(-dirty)?\)\n$`)
		if out := run(t, "bin", "./"+program, "--version"); !want.MatchString(out) {
			t.Errorf("%q is not %s", out, want)
		}
	}
}

// A program of a repository that has this package's files, without tools/build.sh.
func TestCommitOfGoBuild(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"VERSION", "version.go", ".gitattributes", "tools/build.sh", "tools/steps.sh"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(name, string(text))
	}
	write(".gitignore", "/bin\n/build\n")
	write("go.mod", "module github.com/ovn-sluice/sluice\n\ngo 1.26\n")
	write("cmd/tool/main.go", "package main\n\nimport \"github.com/ovn-sluice/sluice\"\n\nfunc main() { print(sluice.Version()) }\n")
	git := func(args ...string) string {
		return strings.TrimSpace(run(t, dir, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x@example"}, args...)...))
	}
	commit := func(where string) {
		git("-C", where, "init", "-q")
		git("-C", where, "add", ".")
		git("-C", where, "commit", "-q", "-m", "x")
	}
	commit(dir)
	says := func(what, at, commit string) {
		t.Helper()
		run(t, at, "sh", "tools/build.sh", "tool")
		for how, args := range map[string][]string{"go": {"go", "run", "-buildvcs=true", "./cmd/tool"}, "tools/build.sh": {"bin/tool"}} {
			if got, want := run(t, at, args[0], args[1:]...), join(number, commit); got != want {
				t.Errorf("%s by %s says %q, not %q", what, how, got, want)
			}
		}
	}
	head := git("rev-parse", "HEAD")[:8]
	says("a clean checkout", dir, head)
	archive := t.TempDir()
	git("archive", "-o", filepath.Join(archive, "x.tar"), "HEAD")
	run(t, archive, "tar", "-xf", "x.tar")
	says("an archive", archive, head)
	commit(archive)
	below := filepath.Join(archive, "below")
	run(t, archive, "mkdir", below)
	run(t, below, "tar", "-xf", "../x.tar")
	says("an archive in another repository", below, head)
	write(".gitignore", "/bin\n/build\n/other\n")
	says("a checkout with changes", dir, head+"-dirty")
}
