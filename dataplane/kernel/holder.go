package kernel

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/ovn-sluice/sluice/pkg/link"
)

// PortHeldError tells who has the UDP port that sluice-vxlan needs.
type PortHeldError struct {
	Port uint16
	// Holder is a link or a process, for people.
	Holder string
}

func (e *PortHeldError) Error() string {
	return fmt.Sprintf("UDP port %d is held by %s: remove or stop it, or give the fabric another UDP port (fabric.port)", e.Port, e.Holder)
}

// portHolder looks for a holder of the UDP port other than our own devices, of either
// form: links first, up or not, since one that is down takes the port when it comes up.
func portHolder(h *netlink.Handle, port uint16) error {
	links, err := link.Dump(h.LinkList)
	if err != nil {
		return fmt.Errorf("listing links: %w", err)
	}
	ours := false
	for _, l := range links {
		if isTunnel(l) || unfinishedTunnel(l) {
			v, ok := l.(*netlink.Vxlan)
			ours = ours || ok && up(l) && v.Port == int(port)
			continue
		}
		switch v := l.(type) {
		case *netlink.Vxlan:
			if v.Port == int(port) {
				return &PortHeldError{port, describe(v.Name, "vxlan")}
			}
		case *netlink.Geneve:
			if v.Dport == port {
				return &PortHeldError{port, describe(v.Name, "geneve")}
			}
		}
	}
	if ours {
		return nil // the socket is theirs
	}
	for _, table := range []string{"udp", "udp6"} {
		if inode, found := boundSocket("/proc/thread-self/net/"+table, port); found {
			return &PortHeldError{port, process(inode)}
		}
	}
	return nil
}

func describe(name, kind string) string {
	if strings.HasPrefix(name, "vxlan_sys_") || strings.HasPrefix(name, "genev_sys_") {
		return fmt.Sprintf("link %s, a %s tunnel port of Open vSwitch", name, kind)
	}
	return fmt.Sprintf("link %s (%s)", name, kind)
}

// boundSocket finds a socket bound to the port in a table of /proc/net, and its
// inode: 0 for a socket of the kernel.
func boundSocket(path string, port uint16) (inode string, found bool) {
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		if len(words) < 10 {
			continue
		}
		_, hex, ok := strings.Cut(words[1], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); ok && err == nil && uint16(n) == port {
			if words[9] != "0" {
				return words[9], true
			}
			inode, found = words[9], true
		}
	}
	return inode, found
}

// process names who has the socket open.
func process(inode string) string {
	if inode == "0" {
		return "a tunnel of the kernel that is no link of this namespace"
	}
	want := "socket:[" + inode + "]"
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == want {
			pid := strings.Split(fd, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf("process %s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return "a process that cannot be seen from here (socket inode " + inode + ")"
}
