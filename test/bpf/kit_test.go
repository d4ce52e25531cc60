package bpf_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	kernel "github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
)

// kit is the verified programs of a plane with their maps. The verifier takes seconds for them, so a
// test that has passed leaves its kit to the next one, with all maps empty. Tests have pins of their
// own. SLUICE_NIGHTLY makes every test load its own.
type kit struct {
	key      kitKey
	maps     map[string]*kernel.Map // by the name of the pin, as programs
	programs map[string]*kernel.Program
}

// kitKey is what Load makes programs and maps of.
type kitKey struct {
	plane  ebpf.Plane
	node   ebpf.Node
	limits ebpf.Limits
}

// kits are those that no test uses now.
var kits = map[kitKey][]*kit{}

// takeKit pins a free kit in a directory that has nothing yet. Without one it returns nil, and Load verifies.
func takeKit(t testing.TB, cfg ebpf.Config) *kit {
	t.Helper()
	key := kitKey{cfg.Plane, cfg.Node, cfg.Limits}
	free := kits[key]
	if len(free) == 0 {
		return nil
	}
	k := free[len(free)-1]
	kits[key] = free[:len(free)-1]
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, m := range k.maps {
		// A clone: a pinned map of cilium/ebpf remembers its path.
		c, err := m.Clone()
		pinIn(t, cfg.Dir, name, c, err)
	}
	for name, p := range k.programs {
		c, err := p.Clone()
		pinIn(t, cfg.Dir, name, c, err)
	}
	return k
}

func isEmpty(t testing.TB, dir string) bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return len(entries) == 0
}

func pinIn(t testing.TB, dir, name string, object interface {
	Pin(string) error
	Close() error
}, err error) {
	t.Helper()
	if err == nil {
		err = errors.Join(object.Pin(filepath.Join(dir, name)), object.Close())
	}
	if err != nil {
		t.Fatalf("pin %s of a kit: %v", name, err)
	}
}

// openKit opens what Load has pinned.
func openKit(t testing.TB, cfg ebpf.Config) *kit {
	t.Helper()
	k := &kit{key: kitKey{cfg.Plane, cfg.Node, cfg.Limits}, maps: map[string]*kernel.Map{}, programs: map[string]*kernel.Program{}}
	entries, err := os.ReadDir(cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		name, path := e.Name(), filepath.Join(cfg.Dir, e.Name())
		switch {
		case strings.HasPrefix(name, "prog_"):
			k.programs[name], err = kernel.LoadPinnedProgram(path, nil)
		case strings.HasPrefix(name, "link_"):
		default:
			k.maps[name], err = kernel.LoadPinnedMap(path, &kernel.LoadPinOptions{ReadOnly: isConstants(name)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func isConstants(pin string) bool { return strings.HasPrefix(pin, "const_") }

// keep gives the kit back when the test has passed. A kit whose maps cannot be emptied is dropped,
// as is that of a test that has failed.
func (k *kit) keep(t testing.TB) {
	t.Cleanup(func() {
		if t.Failed() {
			k.close()
			return
		}
		for name, m := range k.maps {
			if err := empty(name, m); err != nil {
				t.Logf("this kit is dropped: map %s: %v", name, err)
				k.close()
				return
			}
		}
		kits[k.key] = append(kits[k.key], k)
	})
}

func (k *kit) close() {
	for _, m := range k.maps {
		m.Close()
	}
	for _, p := range k.programs {
		p.Close()
	}
}

// empty makes a map what it was when it was made.
func empty(name string, m *kernel.Map) error {
	if isConstants(name) {
		return nil
	}
	if info, err := m.Info(); err != nil || info.Frozen() {
		return errors.Join(err, errors.New("it is frozen"))
	}
	switch m.Type() {
	case kernel.RingBuf:
		return drain(m)
	case kernel.ArrayOfMaps:
		return emptyOuter(m)
	case kernel.ProgramArray:
		return nil // what a program calls is a part of it
	case kernel.Array, kernel.PerCPUArray:
		return zero(m)
	}
	var keys [][]byte
	key, err := m.NextKeyBytes(nil)
	for ; err == nil && key != nil; key, err = m.NextKeyBytes(key) {
		keys = append(keys, key)
	}
	for _, key := range keys {
		if e := m.Delete(key); e != nil && !errors.Is(e, kernel.ErrKeyNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// drain reads a ring buffer to its end.
func drain(m *kernel.Map) error {
	r, err := ringbuf.NewReader(m)
	if err != nil {
		return err
	}
	defer r.Close()
	r.SetDeadline(time.Now().Add(-time.Second)) // what is there now, without waiting for more
	for err == nil {
		_, err = r.Read()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

func emptyOuter(m *kernel.Map) error {
	for i := range m.MaxEntries() {
		var inner *kernel.Map
		if err := m.Lookup(i, &inner); errors.Is(err, kernel.ErrKeyNotExist) {
			continue
		} else if err != nil {
			return err
		}
		inner.Close()
		if err := m.Delete(i); err != nil {
			return err
		}
	}
	return nil
}

// zero writes zeros in batches, by the system call: cilium/ebpf's batches need the type of the values.
func zero(m *kernel.Map) error {
	const chunk = 8192
	size := int(m.ValueSize())
	if m.Type() == kernel.PerCPUArray {
		size = (size + 7) / 8 * 8 * kernel.MustPossibleCPU()
	}
	zeros, keys := make([]byte, chunk*size), make([]uint32, chunk)
	for at := uint32(0); at < m.MaxEntries(); at += chunk {
		for i := range keys {
			keys[i] = at + uint32(i)
		}
		// union bpf_attr, the part of BPF_MAP_*_BATCH (include/uapi/linux/bpf.h)
		attr := struct {
			in, out, keys, values uint64
			count, fd             uint32
			elemFlags, flags      uint64
		}{keys: uint64(uintptr(unsafe.Pointer(&keys[0]))), values: uint64(uintptr(unsafe.Pointer(&zeros[0]))),
			count: min(chunk, m.MaxEntries()-at), fd: uint32(m.FD())}
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_UPDATE_BATCH, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
		runtime.KeepAlive(keys)
		runtime.KeepAlive(zeros)
		if errno != 0 {
			return errno
		}
	}
	return nil
}
