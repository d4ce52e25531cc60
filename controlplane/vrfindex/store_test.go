package vrfindex

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/statefile"
)

func open(t *testing.T, path string, seed map[intent.VNI]uint16) *Store {
	t.Helper()
	s, err := Open(path, seed)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func index(t *testing.T, s *Store, vni intent.VNI, want uint16) {
	t.Helper()
	if got, err := s.Index(vni); err != nil || got != want {
		t.Errorf("index of VNI %d: %d, %v; want %d", vni, got, err, want)
	}
}

func commit(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Commit(); err != nil {
		t.Fatal(err)
	}
}

// TestStable: numbers survive a restart; a released one is the last to be used again.
func TestStable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	s := open(t, path, nil)
	index(t, s, 1001, 1)
	index(t, s, 16777215, 2)
	index(t, s, 1001, 1)
	s.Release(1001)
	index(t, s, 7, 3)
	commit(t, s)
	s = open(t, path, nil)
	index(t, s, 16777215, 2)
	index(t, s, 7, 3)
	index(t, s, 1001, 4)
	s.Retain(func(v intent.VNI) bool { return v == 7 }, nil)
	commit(t, s)
	s = open(t, path, nil)
	index(t, s, 16777215, 5)
	index(t, s, 7, 3)
}

// TestSeed: what the data plane shows wins over the file.
func TestSeed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	s := open(t, path, nil)
	index(t, s, 1, 1)
	index(t, s, 2, 2)
	commit(t, s)
	s = open(t, path, map[intent.VNI]uint16{1: 9, 3: 2})
	index(t, s, 1, 9)
	index(t, s, 3, 2)
	index(t, s, 2, 10)
	if _, err := Open("", map[intent.VNI]uint16{1: 9, 3: 9}); err == nil {
		t.Error("one number for two VNIs was accepted")
	}
}

// TestFull: after 65535 numbers the oldest released one comes back.
func TestFull(t *testing.T) {
	s := open(t, "", nil)
	for v := intent.VNI(1); v <= Max; v++ {
		index(t, s, v, uint16(v))
	}
	if _, err := s.Index(Max + 1); !errors.Is(err, ErrFull) {
		t.Errorf("error %v", err)
	}
	s.Release(500)
	s.Release(20)
	index(t, s, 100001, 500)
	index(t, s, 100002, 20)
}

// TestBadFile: a damaged file is set aside, and what the data plane shows counts; that
// of a newer program stays.
func TestBadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	for content, newer := range map[string]bool{
		"{": false, "": false, "null": false, `[]`: false, `{"version":1,"indices":{"1":0}}`: false, `{"version":2}`: true,
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Peek(path, nil); !newer && (err != nil || s.Damaged() == nil) {
			t.Errorf("%s: looked at: %v", content, err)
		}
		s, err := Open(path, map[intent.VNI]uint16{7: 3})
		if newer {
			if err == nil {
				t.Errorf("%s was taken", content)
			}
			continue
		}
		if err != nil || s.Damaged() == nil {
			t.Fatalf("%s: %v", content, err)
		}
		index(t, s, 7, 3)
		if b, err := os.ReadFile(path + aside); err != nil || string(b) != content {
			t.Errorf("set aside: %q, %v", b, err)
		}
		if err := s.Commit(); err != nil {
			t.Error(err)
		}
		if s, err := Open(path, nil); err != nil || s.Damaged() != nil {
			t.Errorf("written anew: %v", err)
		}
	}
	// One number for two VNIs: the lower one keeps it.
	if err := os.WriteFile(path, []byte(`{"version":1,"indices":{"1":5,"2":5}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	index(t, s, 1, 5)
	index(t, s, 2, 6)
}

// TestCommit: the file is written once for all numbers of a step, and only when
// there is something to write.
func TestCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	s := open(t, path, nil)
	commit(t, s)
	const many = 4096
	for v := intent.VNI(1); v <= many; v++ {
		index(t, s, v, uint16(v))
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was written before the commit")
	}
	commit(t, s)
	first := inode(t, path)
	index(t, s, 7, 7)
	commit(t, s)
	if !os.SameFile(first, inode(t, path)) {
		t.Error("nothing changed and the file was written again")
	}
	s.Release(many)
	commit(t, s)
	s = open(t, path, nil)
	for v := intent.VNI(1); v < many; v++ {
		index(t, s, v, uint16(v))
	}
	index(t, s, many, many+1)
}

// TestSlowDisk: nobody who takes a number, gives one back or asks for one waits for a disk
// that takes a second, and a number is kept when it is there, or when the disk has refused it.
func TestSlowDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf.json")
	s := open(t, path, map[intent.VNI]uint16{7: 9})
	commit(t, s)
	writes, refused := make(chan struct{}), error(nil)
	s.WriteBy(func(path string, b []byte) error {
		writes <- struct{}{}
		time.Sleep(time.Second)
		if refused != nil {
			return refused
		}
		return statefile.Write(path, b)
	})
	ctx, stop := context.WithCancel(t.Context())
	told, ended := make(chan error), make(chan error)
	index(t, s, 1001, 10) // before the loop: a turn of it with nothing to write would be told, too
	go func() { ended <- s.Run(ctx, func(err error) { told <- err }) }()
	<-writes // the disk is busy from here on
	began := time.Now()
	index(t, s, 1002, 11)
	index(t, s, 1001, 10)
	s.Release(1002)
	index(t, s, 1002, 12)
	s.Retain(func(intent.VNI) bool { return true }, nil)
	if !s.Kept(7) || s.Kept(1001) || s.Kept(1002) {
		t.Errorf("kept: %t, %t, %t", s.Kept(7), s.Kept(1001), s.Kept(1002))
	}
	t.Logf("seven calls beside a busy disk took %s", time.Since(began))
	select {
	case <-told:
		t.Error("the disk was waited for")
	default:
	}
	if err := <-told; err != nil || !s.Kept(1001) || s.Kept(1002) {
		t.Errorf("%v, kept: %t, %t", err, s.Kept(1001), s.Kept(1002))
	}
	refused = errors.New("no space left on device")
	<-writes // of what came meanwhile
	if err := <-told; err == nil || !s.Kept(1002) {
		t.Errorf("%v, kept: %t", err, s.Kept(1002))
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	index(t, open(t, path, nil), 1001, 10)
}

func inode(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// TestCommitFails: a file that cannot be written is an error at each commit until
// it can; the numbers are the same then.
func TestCommitFails(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, filepath.Join(dir, "vrf.json"), nil)
	index(t, s, 9, 1)
	for range 2 {
		if err := s.Commit(); err == nil {
			t.Fatal("a number that cannot be kept was committed")
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	commit(t, s)
	index(t, open(t, filepath.Join(dir, "vrf.json"), nil), 9, 1)
}

// One who peeks sees the numbers of the file, and writes none.
func TestPeekWritesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vrf-indices.json")
	if s, err := Peek(path, nil); err != nil {
		t.Fatal(err)
	} else if n, err := s.Index(1001); n != 1 || err != nil {
		t.Errorf("index %d, %v", n, err)
	} else if err := s.Commit(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("the file was made")
	}
	s, err := Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, vni := range []intent.VNI{7, 1001} {
		if _, err := s.Index(vni); err != nil {
			t.Fatal(err)
		}
	}
	commit(t, s)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Peek(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for vni, want := range map[intent.VNI]uint16{1001: 2, 9: 3} {
		if n, err := p.Index(vni); n != want || err != nil {
			t.Errorf("index of %d: %d, %v", vni, n, err)
		}
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the file is %s, %v", after, err)
	}
}
