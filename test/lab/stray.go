package lab

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// space identifies a network namespace.
type space struct{ dev, ino uint64 }

func spaceOf(path string) (space, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return space{}, err
	}
	return space{st.Dev, st.Ino}, nil
}

// endStrays kills what users and tests started in the lab's namespaces and left
// there: it would keep them alive. The caller and its parents are spared, so that
// a lab can be taken down from a shell inside it.
func (l *Lab) endStrays() error {
	own := map[space]bool{}
	for _, n := range l.Nodes() {
		// A node that was not made yet has none.
		if s, err := spaceOf(n.netnsPath()); err == nil {
			own[s] = true
		}
	}
	spared := map[int]bool{}
	for pid := os.Getpid(); pid > 1 && !spared[pid]; pid = parentOf(pid) {
		spared[pid] = true
	}
	// Again, since a process may have started another one meanwhile.
	for range 10 {
		strays, err := straysIn(own, spared)
		if err != nil || len(strays) == 0 {
			return err
		}
		var errs []error
		for _, p := range strays {
			errs = append(errs, p.Kill())
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return errors.New("processes in its namespaces start new ones faster than they are ended")
}

func straysIn(own map[space]bool, spared map[int]bool) ([]*Process, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil || len(own) == 0 {
		return nil, err
	}
	var out []*Process
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || spared[pid] {
			continue
		}
		// The start time first: Kill ends only the process that was looked at.
		start, state, err := procStat(pid)
		if err != nil || state == 'Z' {
			continue
		}
		if s, err := spaceOf(dir + "/ns/net"); err == nil && own[s] {
			out = append(out, &Process{Node: "a node", Name: "a process", PID: pid, StartTime: start})
		}
	}
	return out, nil
}

// parentOf reads field 4 of /proc/PID/stat, 0 when there is no such process.
func parentOf(pid int) int {
	f, err := procFields(pid)
	if err != nil {
		return 0
	}
	ppid, err := strconv.Atoi(f[1])
	if err != nil {
		return 0
	}
	return ppid
}

// lacksRoot is the error of a command that enters or changes a lab.
func lacksRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("a lab needs root, and this is user %d: namespaces, links and mounts", os.Geteuid())
	}
	return nil
}
