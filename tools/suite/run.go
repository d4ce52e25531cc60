package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runner runs stages and keeps what they said.
type runner struct {
	out  io.Writer
	log  *os.File
	lock *os.File // held to the end

	mu      sync.Mutex // of what follows, and of out and log
	results []result
	seeds   []string
	began   time.Time
}

// result is how a package, or a check, has ended.
type result struct {
	part   part
	pkg    string
	failed bool
	cached bool
	took   time.Duration
}

func newRunner(out io.Writer) (*runner, error) {
	if err := os.MkdirAll("build", 0o755); err != nil {
		return nil, err
	}
	lock, err := os.Create(filepath.Join("build", "suite.lock"))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, fmt.Errorf("another run of this checkout holds %s: %w", lock.Name(), err)
	}
	for _, report := range reports {
		if err := os.Remove(report.file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	log, err := os.Create(filepath.Join("build", "test.log"))
	return &runner{out: out, log: log, lock: lock, began: time.Now()}, err
}

// run does all of a schedule, whatever the first parts say.
func (r *runner) run(ctx context.Context, s schedule) error {
	defer r.log.Close()
	var beside sync.WaitGroup
	beside.Go(func() {
		for _, p := range s.beside {
			p.behind = len(s.all()) > len(s.beside)+len(s.last)
			r.part(ctx, p)
		}
	})
	for _, stage := range s.stages {
		var lanes sync.WaitGroup
		for _, l := range stage {
			lanes.Go(func() {
				for _, p := range l {
					r.part(ctx, p)
				}
			})
		}
		lanes.Wait()
	}
	beside.Wait()
	for _, p := range s.last {
		r.part(ctx, p)
	}
	return r.summary(ctx)
}

func (r *runner) part(ctx context.Context, p part) {
	if ctx.Err() != nil || len(p.command)+len(p.packages) == 0 {
		return
	}
	begin := time.Now()
	r.mu.Lock()
	fmt.Fprintf(r.out, "== %s begins\n", p.name)
	r.mu.Unlock()
	var failed bool
	if len(p.command) > 0 {
		failed = r.check(ctx, p)
	} else {
		failed = r.test(ctx, p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	state := "passed"
	switch {
	case failed && ctx.Err() != nil:
		state = "INTERRUPTED"
	case failed:
		state = "FAILED"
	}
	fmt.Fprintf(r.out, "== %s %s after %d s\n", p.name, state, int(time.Since(begin).Seconds()))
	if failed || len(p.command) > 0 {
		r.results = append(r.results, result{part: p, failed: failed, took: time.Since(begin)})
	}
}

// command is one that ends with its context, and all that it started.
func command(ctx context.Context, argv ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	return cmd
}

func (r *runner) check(ctx context.Context, p part) (failed bool) {
	out, err := command(ctx, p.command...).CombinedOutput()
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.log, "== %s\n%s", p.name, out)
	if err != nil {
		fmt.Fprintf(r.out, "%s%s: %v\n", out, p.name, err)
	}
	return err != nil
}

// event is a line of go test -json (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64 // seconds
}

func (r *runner) test(ctx context.Context, p part) (failed bool) {
	argv := append([]string{"go"}, p.args()...)
	if p.behind {
		argv = append([]string{"nice", "-n", "10"}, argv...)
	}
	cmd := command(ctx, argv...)
	cmd.Env = append(os.Environ(), p.env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	events, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		ran := r.read(p, events)
		err = errors.Join(cmd.Wait(), missing(p.run, ran))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if errs.Len() > 0 {
		fmt.Fprintf(io.MultiWriter(r.out, r.log), "%s", errs.Bytes())
	}
	if err != nil {
		fmt.Fprintf(r.log, "%s: %v\n", p.name, err)
	}
	return err != nil
}

// missing is an error if one of the tests that a part names has not run: go test does not mind a part
// of a test that has another name by now.
func missing(names []string, ran map[string]bool) error {
	var errs []error
	for _, name := range names {
		re := regexp.MustCompile(pattern([]string{name}))
		if strings.Contains(name, "/") {
			re = regexp.MustCompile("^" + name + "$")
		}
		if !slices.ContainsFunc(slices.Collect(maps.Keys(ran)), re.MatchString) {
			errs = append(errs, fmt.Errorf("no test %s has run", name))
		}
	}
	return errors.Join(errs...)
}

// args are those of the go command.
func (p part) args() []string {
	// vet is a part of the lint, and symbols are the debugger's.
	timeout := "80m"
	if slices.Contains(p.env, nightlyEnv) {
		timeout = "4h"
	}
	args := []string{"test", "-json", "-vet=off", "-ldflags=-w", "-p", "2", "-timeout", timeout}
	if p.race {
		args = append(args, "-race")
	}
	if p.behind {
		args = append(args, "-parallel", "1") // what is left of the processors is enough for one machine
	}
	if !p.cached {
		args = append(args, "-count=1")
	}
	if len(p.run) > 0 {
		args = append(args, "-run", pattern(p.run))
	}
	if len(p.skip) > 0 {
		args = append(args, "-skip", pattern(p.skip))
	}
	return append(args, p.packages...)
}

// pattern is that of go test -run for tests by their names.
func pattern(tests []string) string {
	out := make([]string, len(tests))
	for i, t := range tests {
		out[i] = "^" + strings.ReplaceAll(t, "/", "$/^") + "$"
	}
	return strings.Join(out, "|")
}

// read takes the events of go test: the log gets all, the output what failed tests said. It gives the
// tests that have run.
func (r *runner) read(p part, from io.Reader) (ran map[string]bool) {
	ran = map[string]bool{}
	said := map[string]*strings.Builder{} // of tests that have not ended, by package and test
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			e = event{Action: "output", Output: lines.Text() + "\n"}
		}
		if e.Action == "run" {
			ran[e.Test] = true
		}
		r.take(p, e, said)
	}
	return ran
}

func (r *runner) take(p part, e event, said map[string]*strings.Builder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(io.MultiWriter(r.out, r.log), e.Output)
	case "output":
		fmt.Fprint(r.log, e.Output)
		if said[key] == nil {
			said[key] = &strings.Builder{}
		}
		said[key].WriteString(e.Output)
		r.noteSeed(e)
	case "pass", "skip", "fail":
		if text := said[key]; e.Action == "fail" && text != nil {
			fmt.Fprintf(r.out, "-- %s\n%s", cmp.Or(e.Test, e.Package), text)
		}
		if e.Test == "" {
			text := said[key]
			r.results = append(r.results, result{part: p, pkg: e.Package, failed: e.Action == "fail",
				cached: text != nil && strings.Contains(text.String(), "(cached)"), took: time.Duration(e.Elapsed * float64(time.Second))})
		}
		delete(said, key)
	}
}

// noteSeed keeps what a test says about its random numbers: "seed N".
func (r *runner) noteSeed(e event) {
	if i := strings.Index(e.Output, ": seed "); i >= 0 && e.Test != "" {
		r.seeds = append(r.seeds, fmt.Sprintf("%s %s:%s", strings.TrimPrefix(e.Package, module+"/"), e.Test, strings.TrimSpace(e.Output[i+1:])))
	}
}
