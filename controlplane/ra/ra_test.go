package ra

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChild())
	}
	goleak.VerifyTestMain(m)
}

var router = netip.MustParseAddr("fe80::1")

func TestRead(t *testing.T) {
	mac := []byte{2, 0, 0, 0, 0, 1}
	change := func(b []byte, at int, to byte) []byte { b = bytes.Clone(b); b[at] = to; return b }
	for _, tc := range []struct {
		name string
		b    []byte
		from string
		hops int
		want kind
	}{
		{"advertisement", advertise(mac), "fe80::1", 255, advertisement},
		{"without an option", advertise(nil), "fe80::1", 255, advertisement},
		{"solicitation", solicit(mac), "fe80::1", 255, solicitation},
		{"solicitation without an address", solicit(nil), "::", 255, solicitation},
		{"from beyond the link", advertise(mac), "fe80::1", 254, 0},
		{"hop limit not known", advertise(mac), "fe80::1", -1, 0},
		{"global source", advertise(mac), "2001:db8::1", 255, 0},
		{"code", change(advertise(mac), 1, 1), "fe80::1", 255, 0},
		{"option of no length", change(advertise(mac), advertiseLength+1, 0), "fe80::1", 255, 0},
		{"option too long", change(advertise(mac), advertiseLength+1, 2), "fe80::1", 255, 0},
		{"half an option", append(advertise(nil), 1), "fe80::1", 255, 0},
		{"short", advertise(nil)[:12], "fe80::1", 255, 0},
		{"neighbour solicitation", change(advertise(nil), 0, 135), "fe80::1", 255, 0},
		{"empty", nil, "fe80::1", 255, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if k, err := read(tc.b, netip.MustParseAddr(tc.from), tc.hops); k != tc.want || (err == nil) != (k != 0) {
				t.Errorf("got %d, %v", k, err)
			}
		})
	}
	if b := advertise(mac); b[6] != 0 || b[7] != 0 {
		t.Error("the advertisement makes this node a default router")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(advertise([]byte{2, 0, 0, 0, 0, 1}))
	f.Add(solicit(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if k, err := read(b, router, 255); err == nil && k == advertisement && len(b) < advertiseLength {
			t.Errorf("accepted %x", b)
		}
	})
}

// Two ends that both run this find each other, also when the link comes later and
// when it is replaced by another of the same name.
func TestTwoEnds(t *testing.T) {
	a, b := fmt.Sprintf("slra%d", os.Getpid()), fmt.Sprintf("slrb%d", os.Getpid())
	for _, ns := range []string{a, b} {
		sh(t, "ip netns add "+ns)
		t.Cleanup(func() { sh(t, "ip netns del "+ns) })
	}
	heardA, heardB := child(t, a), child(t, b)
	expect(t, heardA, "waiting")
	link := func(mac string) {
		sh(t, fmt.Sprintf(`ip -n %s link add up0 address 02:00:00:00:%s:01 type veth peer name up0 address 02:00:00:00:%s:02 netns %s
			ip -n %s link set up0 up; ip -n %s link set up0 up`, a, mac, mac, b, a, b))
	}
	link("01")
	expect(t, heardA, "fe80::ff:fe00:102%up0")
	expect(t, heardB, "fe80::ff:fe00:101%up0")
	sh(t, "ip -n "+a+" link del up0")
	expect(t, heardA, "waiting")
	link("02")
	expect(t, heardA, "fe80::ff:fe00:202%up0")
	expect(t, heardB, "fe80::ff:fe00:201%up0")
}

// childEnv has the test binary run in the namespace that it was started in: the
// sockets are of the process's namespace.
const childEnv = "SLUICE_RA_TEST_LINK"

func runChild() int {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	err := Run(ctx, os.Getenv(childEnv), nil, func(a netip.Addr) { fmt.Println(a) }, func(err error) {
		if err != nil {
			fmt.Println("waiting")
		}
	})
	if !errors.Is(err, context.Canceled) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// child tells what a process in a namespace says, line by line.
func child(t *testing.T, ns string) <-chan string {
	t.Helper()
	cmd := exec.Command("nsenter", "--net=/run/netns/"+ns, os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), childEnv+"=up0"), os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1024)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- s.Text()
		}
	}()
	t.Cleanup(func() {
		_ = in.Close()
		for range lines {
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("child: %v", err)
		}
	})
	return lines
}

func expect(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case s := <-lines:
			if s == want {
				return
			}
		case <-deadline:
			t.Fatalf("%s was not said", want)
		}
	}
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
}
