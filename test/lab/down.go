package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Down ends the lab's processes, and what else runs in its namespaces, and removes its namespaces, mounts and files.
// It goes on after an error, so that as little as possible stays behind, and may
// be called again.
func (l *Lab) Down() error {
	procs, err := l.Processes()
	errs := []error{err}
	var g errgroup.Group
	for _, p := range procs {
		// Nothing of a lab is worth keeping: no orderly end.
		g.Go(p.Kill)
	}
	errs = append(errs, g.Wait())
	errs = append(errs, l.endStrays())
	errs = append(errs, l.removeNamespaces())
	bpffs := filepath.Join(l.dir, "bpffs")
	if err := unix.Unmount(bpffs, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		errs = append(errs, fmt.Errorf("unmounting %s: %w", bpffs, err))
	}
	if err := errors.Join(errs...); err != nil {
		// The records stay, for another attempt.
		return fmt.Errorf("taking down lab %s: %w", l.prefix, err)
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return err
	}
	l.removeEmptyParents()
	return nil
}

// removeEmptyParents removes what the lab may share with others, when it is the
// last: its parent directory, and the mount that ip-netns makes of /run/netns.
func (l *Lab) removeEmptyParents() {
	// Each of these fails when somebody else still uses it, which is fine.
	_ = os.Remove(filepath.Dir(l.dir))
	if left, err := os.ReadDir("/run/netns"); l.state.MadeNetnsMount && err == nil && len(left) == 0 {
		_ = unix.Unmount("/run/netns", 0)
		_ = os.Remove("/run/netns")
	}
}

// isMount tells whether something is mounted at a path.
func isMount(path string) bool {
	b, err := os.ReadFile("/proc/self/mountinfo")
	return err == nil && strings.Contains(string(b), " "+path+" ")
}

func (l *Lab) removeNamespaces() error {
	var batch strings.Builder
	for _, n := range l.Nodes() {
		if _, err := os.Stat(n.netnsPath()); err == nil {
			fmt.Fprintf(&batch, "netns del %s\n", n.Netns)
		}
	}
	if batch.Len() == 0 {
		return nil
	}
	// A context of its own: cleaning up must work after an interrupt.
	return ipBatch(context.Background(), "", batch.String())
}

// saveLogs copies the logs next to the run directory when a failed lab is to leave them behind. kept
// says where they are.
func (l *Lab) saveLogs() (kept, err error) {
	if !l.keepLogs {
		return nil, nil
	}
	dir := fmt.Sprintf("%s-logs-%d", l.dir, os.Getpid())
	return fmt.Errorf("its logs are kept in %s", dir), os.CopyFS(dir, os.DirFS(l.logDir()))
}
