package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Socket is one that a process leaves to the next: a listening one, or a connection.
type Socket struct {
	Name string `json:"name"`
	// FD is its owner's, and closed by whoever takes it.
	FD int `json:"fd"`
}

// connPrefix is that of the names of connections; what follows is their listener's.
const connPrefix = "connection-"

// Store keeps listening sockets beyond the end of the process. A name is printable, and
// has no colon.
type Store interface {
	StoreFD(name string, fd int) error
	RemoveFD(name string) error
}

// environment names the descriptor of the list of those that are handed over: the list
// itself may be longer than an environment can be.
const environment = "SLUICE_METADATA_SOCKETS"

// Exec replaces the process by another one, which gets the sockets. It returns only where
// it has failed; then the sockets are as they were.
func Exec(path string, argv []string, sockets []Socket) error {
	text, err := json.Marshal(sockets)
	if err != nil {
		return fmt.Errorf("handing sockets over: %w", err)
	}
	list, err := unix.MemfdCreate("metadata-sockets", 0)
	if err != nil {
		return fmt.Errorf("handing sockets over: %w", err)
	}
	f := os.NewFile(uintptr(list), "metadata-sockets")
	defer f.Close()
	if _, err := f.WriteAt(text, 0); err != nil {
		return fmt.Errorf("handing sockets over: %w", err)
	}
	if err := inheritable(sockets, true); err != nil {
		return errors.Join(err, inheritable(sockets, false))
	}
	env := append(os.Environ(), environment+"="+strconv.Itoa(list))
	err = syscall.Exec(path, argv, env)
	return errors.Join(fmt.Errorf("starting %s in this process: %w", path, err), inheritable(sockets, false))
}

func dup(fd int) (int, error) { return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3) }

func inheritable(sockets []Socket, yes bool) error {
	flag := unix.FD_CLOEXEC
	if yes {
		flag = 0
	}
	for _, s := range sockets {
		if _, err := unix.FcntlInt(uintptr(s.FD), unix.F_SETFD, flag); err != nil {
			return fmt.Errorf("handing over socket %s: %w", s.Name, err)
		}
	}
	return nil
}

// Inherit takes what Exec has handed over.
func Inherit() ([]Socket, error) {
	value := os.Getenv(environment)
	if value == "" {
		return nil, nil
	}
	if err := os.Unsetenv(environment); err != nil {
		return nil, err
	}
	fd, err := strconv.Atoi(value)
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("sockets of the process before: %s=%s is no descriptor", environment, value)
	}
	f := os.NewFile(uintptr(fd), "metadata-sockets")
	if f == nil {
		return nil, fmt.Errorf("sockets of the process before: %s=%s is no descriptor", environment, value)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, maxList))
	if err != nil {
		return nil, fmt.Errorf("sockets of the process before: %w", err)
	}
	var sockets []Socket
	if err := json.Unmarshal(text, &sockets); err != nil {
		return nil, fmt.Errorf("sockets of the process before: %w", err)
	}
	return sockets, inheritable(sockets, false)
}

// maxList is in bytes; a list has one line for each connection.
const maxList = 64 << 20
