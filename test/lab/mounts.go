package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mountsProcess is the process that keeps a node's mount namespace (Cloud.OwnNetns).
// Others enter it by its files in /proc, of which "root" is there for a lab that runs in a
// chroot: who enters a mount namespace by a file alone is at its root.
const mountsProcess = "mounts"

// makeMounts gives a node a mount namespace in which /run/netns is empty and its own.
// What the machine mounts later shows there too, but not the other way round.
func (l *Lab) makeMounts(ctx context.Context, n Node) error {
	if !n.OwnMounts {
		return nil
	}
	const script = `umount --recursive --lazy /run/netns; mount -t tmpfs -o mode=0755 netns /run/netns && mount --make-shared /run/netns && exec sleep infinity`
	n.OwnMounts = false
	_, err := l.spawn(ctx, n, spec{
		name: mountsProcess, argv: []string{"unshare", "--mount", "--propagation=slave", "sh", "-c", script},
		ready: func() error {
			held, err := l.Process(n.Name, mountsProcess)
			if err != nil {
				return err
			}
			// What it is called in the end says that it has done the rest.
			name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", held.PID))
			if err == nil && strings.TrimSpace(string(name)) != "sleep" {
				err = fmt.Errorf("it is %q", name)
			}
			return err
		},
	})
	if err != nil {
		return fmt.Errorf("mounts of %s: %w", n.Name, err)
	}
	return nil
}

// enter is the command before one that is to run in a node. It enters the network
// namespace alone, unless the node has mounts of its own: `ip netns exec` would remount
// /sys and hide the bpffs.
func (l *Lab) enter(n Node) []string {
	argv := []string{"nsenter", "--net=" + n.netnsPath()}
	if n.OwnMounts {
		pid := 0 // is no process, and entering fails
		if p, err := l.Process(n.Name, mountsProcess); err == nil {
			pid = p.Pid()
		}
		proc := filepath.Join("/proc", fmt.Sprint(pid))
		argv = append(argv, "--mount="+filepath.Join(proc, "ns/mnt"), "--root="+filepath.Join(proc, "root"), "--wd=.")
	}
	return append(argv, "--")
}
