package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Mount namespaces of chassis (Cloud.OwnNetns) are files on a tmpfs of the lab: such a
// file cannot be on a mount that is shared with other namespaces.

func (l *Lab) mountsDir() string { return filepath.Join(l.dir, "mounts") }

// makeMounts gives a node a mount namespace in which /run/netns is empty and its own.
// What the machine mounts later shows there too, but not the other way round.
func (l *Lab) makeMounts(ctx context.Context, n Node) error {
	if n.Mounts == "" {
		return nil
	}
	if err := writeFile(n.Mounts, nil); err != nil {
		return err
	}
	const script = `umount --recursive --lazy /run/netns; mount -t tmpfs -o mode=0755 netns /run/netns && mount --make-shared /run/netns`
	plain := n
	plain.Mounts = ""
	if _, err := run(l.command(ctx, plain, "unshare", "--mount="+n.Mounts, "--propagation=slave", "sh", "-c", script), "mounts of "+n.Name); err != nil {
		return err
	}
	return nil
}

// mountMounts makes the place for them.
func (l *Lab) mountMounts() error {
	used := false
	for _, n := range l.state.Nodes {
		used = used || n.Mounts != ""
	}
	if !used {
		return nil
	}
	if err := os.Mkdir(l.mountsDir(), 0o700); err != nil {
		return err
	}
	if err := unix.Mount("mounts", l.mountsDir(), "tmpfs", 0, "mode=0700"); err != nil {
		return fmt.Errorf("mounting a tmpfs at %s: %w", l.mountsDir(), err)
	}
	return unix.Mount("", l.mountsDir(), "", unix.MS_PRIVATE, "")
}

// unmount takes a mount of the lab away, with what is mounted below it.
func unmount(dir string) error {
	err := unix.Unmount(dir, unix.MNT_DETACH)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("unmounting %s: %w", dir, err)
}
