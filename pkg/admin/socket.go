package admin

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
)

// listen makes the socket at path. The caller holds the lock of the path, so a
// socket that is there is stale.
func listen(path string) (*net.UnixListener, error) {
	switch info, err := os.Lstat(path); {
	case err == nil && info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("admin socket: %s exists and is no socket; remove it, or configure another path", path)
	case err != nil && !os.IsNotExist(err):
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	// Bound in a directory that nobody else can enter, and moved when its mode
	// is right: there is no moment in which another user can connect.
	tmp, err := os.MkdirTemp(filepath.Dir(path), ".")
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	inner := filepath.Join(tmp, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: inner, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := os.Chmod(inner, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	if err := os.Rename(inner, path); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("admin socket: %w", err)
	}
	return l, nil
}
