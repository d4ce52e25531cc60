package systemd

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Descriptor is an open file with the name by which it was stored.
type Descriptor struct {
	Name string
	FD   int
}

// firstFD is the first that a service manager hands over (SD_LISTEN_FDS_START).
const firstFD = 3

// maxName is the longest name of a descriptor (FDNAME, sd_notify(3)).
const maxName = 255

// Present tells whether a service manager listens.
func Present() bool { return os.Getenv(notifySocket) != "" }

const notifySocket = "NOTIFY_SOCKET"

// StoreFD gives the service manager a copy of a descriptor, which it hands to the next
// process of the unit, however this one ends (FileDescriptorStoreMax=). One that it has
// already is not stored twice.
func (n *Notifier) StoreFD(name string, fd int) error {
	word, err := storeName(name)
	if err != nil {
		return err
	}
	return notifyWith("FDSTORE=1\nFDNAME="+word, fd)
}

// RemoveFD has the service manager close its copies of a name.
func (n *Notifier) RemoveFD(name string) error {
	word, err := storeName(name)
	if err != nil {
		return err
	}
	return notifyWith("FDSTOREREMOVE=1\nFDNAME="+word, -1)
}

// storeName has no character that a service manager does not take.
func storeName(name string) (string, error) {
	word := url.QueryEscape(name)
	if word == "" || len(word) > maxName {
		return "", fmt.Errorf("a descriptor cannot be stored with a name of %d characters", len(word))
	}
	return word, nil
}

// notifyWith sends a message, with a descriptor unless it is -1. Without a service manager
// it does nothing.
func notifyWith(state string, fd int) error {
	path := os.Getenv(notifySocket)
	if path == "" {
		return nil
	}
	// Package net sends no descriptors on datagram sockets that are connected.
	s, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("telling the service manager: %w", err)
	}
	defer unix.Close(s)
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	// A name that begins with @ is one of the abstract namespace.
	if err := unix.Sendmsg(s, []byte(state), rights, &unix.SockaddrUnix{Name: path}, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("telling the service manager: %w", err)
	}
	return nil
}

// Stored takes the descriptors that the service manager has handed over (sd_listen_fds(3)),
// once: they are the caller's, and no child of this process gets them.
func Stored() ([]Descriptor, error) {
	pid, fds, names := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_FDNAMES")
	for _, v := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		if err := os.Unsetenv(v); err != nil {
			return nil, err
		}
	}
	if fds == "" || pid != strconv.Itoa(os.Getpid()) {
		return nil, nil
	}
	n, err := strconv.Atoi(fds)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("descriptors of the service manager: LISTEN_FDS=%s is no number", fds)
	}
	words := strings.Split(names, ":")
	out := make([]Descriptor, 0, n)
	for i := range n {
		d := Descriptor{FD: firstFD + i}
		if _, err := unix.FcntlInt(uintptr(d.FD), unix.F_SETFD, unix.FD_CLOEXEC); err != nil {
			return out, fmt.Errorf("descriptor %d of the service manager: %w", d.FD, err)
		}
		if i < len(words) {
			if name, err := url.QueryUnescape(words[i]); err == nil {
				d.Name = name
			}
		}
		out = append(out, d)
	}
	return out, nil
}
