package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one recorded process of a lab. Its record on disk lets another
// process find, check and end it.
type Process struct {
	Node string   `json:"node"`
	Name string   `json:"name"`
	Argv []string `json:"argv"`
	Env  []string `json:"env"`
	Log  string   `json:"log"`
	// After is run each time the process was started, in its node.
	After []string `json:"after,omitempty"`
	// PID and StartTime (field 22 of /proc/PID/stat) identify the process: a
	// reused id has another start time.
	PID       int    `json:"pid"`
	StartTime uint64 `json:"startTime"`

	record string
}

// Pid is the process id, 0 when it is not running.
func (p *Process) Pid() int {
	if p.Running() {
		return p.PID
	}
	return 0
}

// Running tells whether the recorded process is alive.
func (p *Process) Running() bool {
	st, state, err := procStat(p.PID)
	// X is a process that has ended, and is being waited for at this moment.
	return p.PID != 0 && err == nil && st == p.StartTime && state != 'Z' && state != 'X'
}

// Start starts the process again with its recorded arguments; a running one is
// left alone. It does not wait until the process is of use: see Lab.WaitFor.
func (p *Process) Start() error {
	if p.Running() {
		return nil
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Env, log, log
	cmd.Dir = filepath.Dir(p.record)
	// A session of its own: Ctrl-C at the terminal reaches the lab's caller only,
	// which then takes everything down in order.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s on %s: %w", p.Name, p.Node, err)
	}
	p.PID = cmd.Process.Pid
	p.StartTime, _, err = procStat(p.PID)
	if err != nil {
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	// Reap it, so that it does not stay as a zombie of this process.
	go func() { _ = cmd.Wait() }()
	if err := p.save(); err != nil || len(p.After) == 0 {
		return err
	}
	after := exec.Command(p.After[0], p.After[1:]...)
	after.Env = p.Env
	_, err = run(after, "after starting "+p.Name+" on "+p.Node)
	return err
}

// Signal sends a signal, if the process is still the recorded one.
func (p *Process) Signal(sig syscall.Signal) error {
	fd, err := p.open()
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd)
	return unix.PidfdSendSignal(fd, sig, nil, 0)
}

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() error { return p.end(unix.SIGKILL, Patience()/6) }

// Stop ends the process with SIGTERM, and with SIGKILL after a sixth of Patience.
func (p *Process) Stop() error {
	err := p.end(unix.SIGTERM, Patience()/6)
	if errors.Is(err, errStillThere) {
		return p.Kill()
	}
	return err
}

// Restart is Stop and Start.
func (p *Process) Restart() error {
	if err := p.Stop(); err != nil {
		return err
	}
	return p.Start()
}

var errStillThere = errors.New("the process did not end")

func (p *Process) end(sig syscall.Signal, patience time.Duration) error {
	fd, err := p.open()
	if err != nil || fd < 0 {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("ending %s on %s: %w", p.Name, p.Node, err)
	}
	deadline := time.Now().Add(patience)
	for {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("%s on %s, pid %d: %w", p.Name, p.Node, p.PID, errStillThere)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			return nil
		}
	}
}

// open returns a pidfd of the recorded process, or -1 when it is gone. The
// identity is checked after opening: from then on the id cannot be reused.
func (p *Process) open() (int, error) {
	if p.PID == 0 {
		return -1, nil
	}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return -1, nil
	}
	if err != nil {
		return -1, err
	}
	if !p.Running() {
		unix.Close(fd)
		return -1, nil
	}
	return fd, nil
}

// LogTail is the end of the process' log.
func (p *Process) LogTail(lines int) string {
	b, err := os.ReadFile(p.Log)
	if err != nil {
		return ""
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

func (p *Process) save() error {
	b, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return writeFile(p.record, b)
}

// procStat reads the start time (field 22) and the state (field 3).
func procStat(pid int) (start uint64, state byte, err error) {
	f, err := procFields(pid)
	if err != nil {
		return 0, 0, err
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	return start, f[0][0], err
}

// procFields are the fields of /proc/PID/stat from the third one on.
func procFields(pid int) ([]string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The command name (field 2) may hold anything; the last ")" ends it.
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return nil, fmt.Errorf("/proc/%d/stat: too few fields", pid)
	}
	return f, nil
}

// spec is a process to start in a node.
type spec struct {
	name string
	argv []string
	// after is a shell script that is run after each start.
	after string
	ready func() error
}

// spawn records and starts a process in a node, then waits until it is ready.
func (l *Lab) spawn(ctx context.Context, n Node, s spec) (*Process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	enter := l.enter(n)
	p := &Process{
		Node: n.Name, Name: s.name, Env: l.env(n),
		Argv:   slices.Concat(enter, s.argv),
		Log:    filepath.Join(l.logDir(), n.Name+"-"+s.name+".log"),
		record: filepath.Join(l.dir, "proc", n.Name+"."+s.name+".json"),
	}
	if s.after != "" {
		p.After = slices.Concat(enter, []string{"timeout", "30", "sh", "-c", s.after})
	}
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("%w; its log ends: %s", err, p.LogTail(5))
	}
	err := l.WaitFor(ctx, s.name+" on "+n.Name, func() error {
		if !p.Running() {
			return Fatal(fmt.Errorf("it exited; its log ends: %s", p.LogTail(5)))
		}
		if s.ready == nil {
			return nil
		}
		return s.ready()
	})
	return p, err
}

// Process finds a process of a node by name: ovsdb, vswitchd and controller of
// a chassis; nb, sb and northd of a central node (northd on the first one of a
// cluster only); relay of a relay; zebra and bgpd (FRR 10: mgmtd
// too) of a reflector and of a peer with FRR; gobgpd of any other peer; sluiced and
// metadata where they were started; controller1 and controller2 of node api; mounts of a chassis with a /run/netns of its own.
func (l *Lab) Process(node, name string) (*Process, error) {
	return readProcess(filepath.Join(l.dir, "proc", node+"."+name+".json"))
}

// Processes lists all recorded processes, ended ones too.
func (l *Lab) Processes() ([]*Process, error) {
	files, err := filepath.Glob(filepath.Join(l.dir, "proc", "*.json"))
	if err != nil {
		return nil, err
	}
	var out []*Process
	for _, f := range files {
		p, err := readProcess(f)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, nil
}

func readProcess(file string) (*Process, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("no such process of the lab: %w", err)
	}
	p := &Process{record: file}
	if err := json.Unmarshal(b, p); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}
