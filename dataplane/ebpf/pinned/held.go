package pinned

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Held is a pin directory that this process writes. It holds on to the directory itself, so that
// a mount over its path, or the end of its own mount, takes no pin away while the process runs.
type Held struct {
	path   string
	mu     sync.Mutex // of what follows
	lock   *os.File
	closed bool
}

// Hold makes the directory if need be, and takes it for this process until Close.
func Hold(path string) (*Held, error) {
	if err := MakeDir(path); err != nil {
		return nil, err
	}
	lock, err := Lock(path)
	if err != nil {
		return nil, err
	}
	return &Held{path: path, lock: lock}, nil
}

// Close lets go of the directory. It comes before what is pinned is closed: Keep does nothing
// after it, and would pin what has the descriptors by then.
func (h *Held) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	return h.lock.Close()
}

// Dir leads to the directory: by its path, or where that leads elsewhere by its descriptor.
func (h *Held) Dir() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if there, err := h.there(); err == nil && there {
		return h.path
	}
	return h.byDescriptor()
}

func (h *Held) byDescriptor() string { return fmt.Sprintf("/proc/self/fd/%d", h.lock.Fd()) }

// there tells whether the path leads to the directory.
func (h *Held) there() (bool, error) {
	var held, found unix.Stat_t
	if err := unix.Fstat(int(h.lock.Fd()), &held); err != nil {
		return false, fmt.Errorf("stat the pin directory: %w", err)
	}
	err := unix.Stat(h.path, &found)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("stat %s: %w", h.path, err)
	}
	return held.Dev == found.Dev && held.Ino == found.Ino, nil
}

// Keep makes the pins again where the path leads now, if that is not the directory any more, and
// those that somebody has removed. objects are the descriptors of what is to be pinned, by the
// names of the pins: nobody renames or replaces these pins meanwhile.
func (h *Held) Keep(objects map[string]int, log *slog.Logger) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	made, err := h.settle()
	if err != nil {
		return fmt.Errorf("pins: %w", err)
	}
	if made > 0 {
		log.Warn("another file system was mounted over the pins, or theirs was unmounted; the pins were created again", "path", h.path, "pins", made)
	}
	again, err := h.restore(objects)
	if len(again) > 0 {
		log.Warn("pins were removed; they were created again", "path", h.path, "pins", again)
	}
	return err
}

// restore pins the objects that have no pin.
func (h *Held) restore(objects map[string]int) (made []string, err error) {
	entries, err := os.ReadDir(h.path)
	if err != nil {
		return nil, fmt.Errorf("read the pins: %w", err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		if there[name] {
			continue
		}
		path := filepath.Join(h.path, name)
		if err := Over(object(objects[name]), path); err != nil {
			errs = append(errs, fmt.Errorf("the pin %s was removed, and cannot be created again: %w", path, err))
			continue
		}
		made = append(made, name)
	}
	return made, errors.Join(errs...)
}

// settle moves the pins to where the path leads, if that is not the directory any more: links
// and programs go on. It tells how many it made. The error says what is mounted at the path.
func (h *Held) settle() (made int, err error) {
	there, err := h.there()
	if err != nil || there {
		return 0, err
	}
	if made, err = h.move(); err != nil {
		return 0, fmt.Errorf("the pins of %s are on another mount than %s, and cannot be created again: %w", h.path, mountAt(h.path), err)
	}
	return made, nil
}

func (h *Held) move() (int, error) {
	// Before a directory is made: the path may lead to an ordinary file system.
	if err := OnBPFFS(filepath.Dir(h.path)); err != nil {
		return 0, err
	}
	to, err := Hold(h.path)
	if err != nil {
		return 0, err
	}
	from := h.byDescriptor()
	entries, err := os.ReadDir(from)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // a directory that was removed has nothing
		return 0, errors.Join(fmt.Errorf("read the pins: %w", err), to.Close())
	}
	var moved []string
	for _, e := range entries {
		if e.IsDir() || strings.HasSuffix(e.Name(), AsideSuffix) {
			continue
		}
		if err := again(filepath.Join(from, e.Name()), filepath.Join(h.path, e.Name())); err != nil {
			return 0, errors.Join(fmt.Errorf("pin %s: %w", e.Name(), err), to.Close())
		}
		moved = append(moved, e.Name())
	}
	// All are there: those of before would keep alive what is replaced later.
	for _, name := range moved {
		_ = os.Remove(filepath.Join(from, name)) // a mount that is gone takes them along
	}
	old := h.lock
	h.lock = to.lock
	return len(moved), old.Close()
}

// again pins what one path leads to at another, in the place of what is there. Which kind of
// object it is makes no difference.
func again(from, to string) error {
	fd, err := objectAt(from)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return Over(object(fd), to)
}

// object is a descriptor of a map, a program or a link.
type object int

// pathAttr is what bpf(2) takes for BPF_OBJ_GET and BPF_OBJ_PIN.
type pathAttr struct {
	path  uint64 // a pointer
	fd    uint32
	flags uint32
}

// Pin makes a pin.
func (o object) Pin(path string) error {
	_, err := pathCall(unix.BPF_OBJ_PIN, path, uint32(o))
	return err
}

func objectAt(path string) (fd int, err error) { return pathCall(unix.BPF_OBJ_GET, path, 0) }

func pathCall(command uintptr, path string, fd uint32) (int, error) {
	p, err := unix.BytePtrFromString(path)
	if err != nil {
		return 0, err
	}
	attr := pathAttr{path: uint64(uintptr(unsafe.Pointer(p))), fd: fd}
	r, _, errno := unix.Syscall(unix.SYS_BPF, command, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(p)
	if errno != 0 {
		return 0, errno
	}
	return int(r), nil
}

// mountAt words the mount that a path is on: the last one of those that lead to it.
func mountAt(path string) string {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "the present one"
	}
	return mountOf(path, string(b))
}

// mountOf looks it up in the text of mountinfo (proc(5)).
func mountOf(path, mountinfo string) string {
	point, kind := "/", "unknown"
	for _, line := range strings.Split(mountinfo, "\n") {
		words, more, _ := strings.Cut(line, " - ")
		f := strings.Fields(words)
		if len(f) < 5 {
			continue
		}
		within := f[4] == "/" || path == f[4] || strings.HasPrefix(path, f[4]+"/")
		if within && len(f[4]) >= len(point) {
			point = f[4]
			kind, _, _ = strings.Cut(more, " ")
		}
	}
	return fmt.Sprintf("that of %s (type %s)", point, kind)
}
