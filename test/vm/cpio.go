package vm

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
)

// archive is an initramfs: regular files by absolute path. Their directories
// are written with them.
type archive map[string]archived

type archived struct {
	mode    fs.FileMode // permission bits
	content []byte
}

// writeTo writes the "new ASCII" cpio format (the kernel's
// Documentation/driver-api/early-userspace/buffer-format.rst).
func (a archive) writeTo(out io.Writer) error {
	w := cpioWriter{w: bufio.NewWriter(out), made: map[string]bool{"/": true, ".": true}}
	for _, name := range slices.Sorted(maps.Keys(a)) {
		w.directories(path.Dir(name))
		w.entry(name, modeRegular|uint32(a[name].mode.Perm()), a[name].content)
	}
	w.entry("TRAILER!!!", 0, nil)
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// The file types of an entry's mode, as in stat(2).
const (
	modeDirectory = 0o040000
	modeRegular   = 0o100000
)

type cpioWriter struct {
	w     *bufio.Writer
	made  map[string]bool
	inode uint32
	err   error
}

// directories writes a directory after those that it is in.
func (w *cpioWriter) directories(dir string) {
	if w.made[dir] {
		return
	}
	w.made[dir] = true
	w.directories(path.Dir(dir))
	w.entry(dir, modeDirectory|0o755, nil)
}

func (w *cpioWriter) entry(name string, mode uint32, content []byte) {
	if w.err != nil {
		return
	}
	w.inode++
	fields := []uint32{w.inode, mode, 0, 0, 1, 0, uint32(len(content)), 0, 0, 0, 0, uint32(len(name) + 1), 0}
	header := []byte("070701")
	for _, f := range fields {
		header = fmt.Appendf(header, "%08X", f)
	}
	header = append(append(header, name...), 0)
	w.padded(header)
	w.padded(content)
}

// padded writes b and fills up to a multiple of four bytes.
func (w *cpioWriter) padded(b []byte) {
	if _, err := w.w.Write(b); err != nil {
		w.err = err
	}
	if _, err := w.w.Write(make([]byte, -len(b)&3)); err != nil {
		w.err = err
	}
}
