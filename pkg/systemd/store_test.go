package systemd

import (
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	n := New(slog.New(slog.DiscardHandler), nil)
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("kept"); err != nil {
		t.Fatal(err)
	}
	if err := n.StoreFD("network4-a:b", int(f.Fd())); err != nil {
		t.Fatal(err)
	}
	text, rights := make([]byte, 512), make([]byte, 512)
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	nt, nr, _, _, err := c.ReadMsgUnix(text, rights)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text[:nt]); got != "FDSTORE=1\nFDNAME=network4-a%3Ab" {
		t.Errorf("%q", got)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:nr])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%v %v", messages, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		t.Fatalf("%v %v", fds, err)
	}
	copied := os.NewFile(uintptr(fds[0]), "copy")
	defer copied.Close()
	b := make([]byte, 4)
	if _, err := copied.ReadAt(b, 0); err != nil || string(b) != "kept" {
		t.Errorf("%q %v", b, err)
	}
	if err := n.RemoveFD("network4-a:b"); err != nil {
		t.Fatal(err)
	}
	if nt, nr, _, _, err = c.ReadMsgUnix(text, rights); err != nil || nr != 0 || string(text[:nt]) != "FDSTOREREMOVE=1\nFDNAME=network4-a%3Ab" {
		t.Errorf("%q %d %v", text[:nt], nr, err)
	}
	for _, bad := range []string{"", strings.Repeat("a", 256)} {
		if n.StoreFD(bad, int(f.Fd())) == nil || n.RemoveFD(bad) == nil {
			t.Errorf("a name of %d characters is taken", len(bad))
		}
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := n.StoreFD("a", int(f.Fd())); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
}

// A process takes what its service manager hands over, once.
func TestStored(t *testing.T) {
	if os.Getenv("SLUICE_TEST_STORED") != "" {
		// LISTEN_PID is known to nobody but the process itself, before it executes.
		got, err := Stored()
		if err != nil || len(got) != 2 {
			t.Fatalf("%+v %v", got, err)
		}
		if names := []string{got[0].Name, got[1].Name}; !slices.Equal(names, []string{"network4-a:b", "steered4"}) {
			t.Errorf("%q", names)
		}
		for _, d := range got {
			if flags, err := unix.FcntlInt(uintptr(d.FD), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("%+v: flags %d %v", d, flags, err)
			}
		}
		if again, err := Stored(); len(again) != 0 || err != nil {
			t.Errorf("again: %+v %v", again, err)
		}
		return
	}
	c := exec.Command("sh", "-c", `LISTEN_PID=$$ exec "$0" -test.run='^TestStored$'`, os.Args[0])
	c.Env = append(os.Environ(), "SLUICE_TEST_STORED=1", "LISTEN_FDS=2", "LISTEN_FDNAMES=network4-a%3Ab:steered4")
	for range 2 {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		defer w.Close()
		c.ExtraFiles = append(c.ExtraFiles, r)
	}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Setenv("LISTEN_FDS", "2")
	t.Setenv("LISTEN_PID", "1")
	if got, err := Stored(); len(got) != 0 || err != nil {
		t.Errorf("another process's: %+v %v", got, err)
	}
}
