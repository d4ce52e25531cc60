package pinned

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

var (
	// ErrInUse is wrapped when another process has the pin directory open for writing.
	ErrInUse = errors.New("another process writes this directory")
	// ErrNewerLayout is wrapped when a pinned map has a layout that this build
	// does not know: a newer Sluice ran here.
	ErrNewerLayout = errors.New("a newer Sluice wrote this directory")
	// ErrNotBPFFS is wrapped when the directory is on another kind of file system.
	ErrNotBPFFS = errors.New("not a bpf file system")
)

// AsideSuffix marks what is not complete yet. (A bpffs takes no dots in names.)
const AsideSuffix = "_new"

// MakeDir makes the directory, whose parent has to be on a bpffs.
func MakeDir(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("create pin directory: %w", err)
	}
	return OnBPFFS(dir)
}

// OnBPFFS refuses a directory on another kind of file system.
func OnBPFFS(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return fmt.Errorf("statfs %s: %w", dir, err)
	}
	if st.Type != unix.BPF_FS_MAGIC {
		return fmt.Errorf("%s: %w: mount one there (`mount -t bpf bpf DIRECTORY`), or on a directory above", dir, ErrNotBPFFS)
	}
	return nil
}

// Lock takes the directory for this process until the file is closed.
func Lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("open pin directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return f, nil
}

// RemoveDir removes pins and then their directory, which something foreign in it keeps.
func RemoveDir(dir string, pins []string) error {
	for _, pin := range pins {
		if err := os.Remove(pin); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove pin: %w", err)
		}
	}
	if err := os.Remove(dir); err != nil {
		if left, _ := os.ReadDir(dir); len(left) == 0 {
			return fmt.Errorf("remove pin directory: %w", err)
		}
	}
	return nil
}

// pagePrefix is of pins that carry the number of a map, so that those of two can be there at once: of the
// maps in an array of maps, and of the array of what a program calls. A build that does not know the
// latter removes it when its own programs run, as a page of a map that has gone.
const pagePrefix = "page_"

// PagePin is where a map in an array of maps is pinned.
func PagePin(dir, outer string, id ebpf.MapID, number uint32) string {
	return filepath.Join(dir, fmt.Sprintf("%s%s_%d_%d", pagePrefix, outer, id, number))
}

// IsOurs tells whether a name in the directory is that of a program, its constants, a link, or a map
// in an array of maps.
func IsOurs(name string) bool {
	for _, prefix := range []string{programPrefix, constantsPrefix, linkPrefix, pagePrefix} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// Over pins under a name that may be taken: aside, then one rename.
func Over(object interface{ Pin(string) error }, path string) error {
	aside := path + AsideSuffix
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := object.Pin(aside); err != nil {
		return fmt.Errorf("pin %s: %w", aside, err)
	}
	if err := os.Rename(aside, path); err != nil {
		return fmt.Errorf("publish pin: %w", err)
	}
	return nil
}

// SplitVersion cuts hosts_v1 into hosts and 1.
func SplitVersion(name string) (base string, version int, ok bool) {
	i := strings.LastIndex(name, "_v")
	if i <= 0 {
		return "", 0, false
	}
	version, err := strconv.Atoi(name[i+2:])
	return name[:i], version, err == nil && version >= 0
}

// Older names the maps in the directory of which specs have a newer layout. It refuses
// a directory that a newer build wrote: what runs goes on as it is.
func Older(dir string, specs map[string]*ebpf.MapSpec) (older []string, err error) {
	known := map[string]int{}
	for name := range specs {
		base, v, _ := SplitVersion(name)
		known[base] = max(known[base], v)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read pin directory: %w", err)
	}
	for _, e := range entries {
		base, v, ok := SplitVersion(e.Name())
		if ok && known[base] != 0 && v > known[base] {
			return nil, fmt.Errorf("%s has layout %d, known is %d: %w; start that version, or run its `sluicectl cleanup` first",
				filepath.Join(dir, e.Name()), v, known[base], ErrNewerLayout)
		}
		if ok && v < known[base] {
			older = append(older, e.Name())
		}
	}
	return older, nil
}

// NewMap makes a map under a name that is free.
func NewMap(path string, spec *ebpf.MapSpec) (*ebpf.Map, error) {
	m, err := ebpf.NewMap(spec)
	if err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}
	if err := m.Pin(path); err != nil {
		m.Close()
		return nil, fmt.Errorf("pin: %w", err)
	}
	return m, nil
}

// SameLayout tells whether a map has the type, the key and the value of a spec; its
// size may be another.
func SameLayout(m *ebpf.Map, spec *ebpf.MapSpec) bool {
	return m.Type() == spec.Type && m.KeySize() == spec.KeySize && m.ValueSize() == spec.ValueSize
}
