package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const transferBytes = 100 << 20

// transfer downloads a file between the clouds and compares its checksum.
func (t *tour) transfer(ctx context.Context) error {
	t.head("100 MB over HTTP, from a VM in cloud B to one in cloud A")
	file := filepath.Join(t.lab.Dir(), "random.bin")
	want, err := writeRandom(file)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	// A one-shot HTTP server: curl takes a body that ends with the connection.
	server, err := t.lab.Command(ctx, "b-red1", "sh", "-c",
		"{ printf 'HTTP/1.0 200 OK\\r\\nContent-Length: "+strconv.Itoa(transferBytes)+"\\r\\n\\r\\n'; cat "+file+"; } | socat STDIO TCP6-LISTEN:8080,ipv6only=0,reuseaddr")
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Wait() }()
	get, err := t.lab.Command(ctx, "a-red1", "curl", "-s", "-S", "--max-time", "300", "--retry", "20", "--retry-connrefused",
		"--retry-delay", "1", "http://10.20.0.11:8080/random.bin")
	if err != nil {
		return err
	}
	start := time.Now()
	end := t.lab.Slow("the download")
	got, n, err := hashOutput(get)
	end()
	if err != nil {
		_ = server.Process.Kill()
		return fmt.Errorf("download: %w", err)
	}
	if got != want {
		return fmt.Errorf("checksum of the download is %s, of the file %s", got, want)
	}
	d := time.Since(start)
	t.say("%d bytes in %.1f s (%.0f Mbit/s through two userspace Open vSwitches); sha256 %s… on both sides.",
		n, d.Seconds(), float64(n)*8/1e6/d.Seconds(), got[:16])
	return nil
}

func writeRandom(file string) (string, error) {
	f, err := os.Create(file)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.CopyN(io.MultiWriter(f, h), rand.Reader, transferBytes); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), f.Close()
}

func hashOutput(cmd *exec.Cmd) (string, int64, error) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", 0, err
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		return "", 0, err
	}
	h := sha256.New()
	n, copyErr := io.Copy(h, out)
	if err := cmd.Wait(); err != nil {
		return "", n, fmt.Errorf("%w: %s", err, stderr.String())
	}
	return hex.EncodeToString(h.Sum(nil)), n, copyErr
}

// isolation captures in blue's VM while red talks to the very same address.
func (t *tour) isolation(ctx context.Context) error {
	t.head("Red never meets blue")
	t.say("10.20.0.11 is a VM of red and a VM of blue. Red sends to UDP port 7777 of it, which nobody of blue uses.")
	blue, err := t.lab.Capture(ctx, "b-blue1", "eth0", "udp port 7777")
	if err != nil {
		return err
	}
	red, err := t.lab.Capture(ctx, "b-red1", "eth0", "udp port 7777")
	if err != nil {
		return err
	}
	// Nobody answers UDP: a busy machine may lose a datagram, so red sends until enough have arrived.
	if err := t.lab.WaitFor(ctx, "red's VM sees red's datagrams", func() error {
		if _, err := t.lab.Exec(ctx, "a-red1", "sh", "-c",
			"for i in $(seq 20); do echo red | socat -u STDIN UDP4:10.20.0.11:7777; echo red | socat -u STDIN UDP6:[fd00:20::11]:7777; done"); err != nil {
			return err
		}
		if n, err := red.Count(); err != nil || n < 40 {
			return fmt.Errorf("%d of 40, %v", n, err)
		}
		return nil
	}); err != nil {
		return err
	}
	got, err := red.Stop()
	if err != nil {
		return err
	}
	stray, err := blue.Stop()
	if err != nil {
		return err
	}
	if len(stray) != 0 {
		return fmt.Errorf("%d of red's packets arrived in blue", len(stray))
	}
	t.say("Red's VM captured %d of red's packets, blue's VM with the same address none.", len(got))
	return nil
}

func (t *tour) routes(ctx context.Context) error {
	t.head("What the fabric knows: the routes as FRR sees them")
	out, err := t.show(ctx, "rr", "vtysh", "-c", "show bgp l2vpn evpn route type prefix")
	if err != nil {
		return err
	}
	if !strings.Contains(out, "[10.20.0.11]") {
		return fmt.Errorf("the route reflector does not show 10.20.0.11")
	}
	return nil
}

func (t *tour) status(ctx context.Context) error {
	t.head("What Sluice knows")
	if _, err := t.show(ctx, "a1", "sluicectl", "status"); err != nil {
		return err
	}
	if _, err := t.show(ctx, "a1", "sluicectl", "vrf", "list"); err != nil {
		return err
	}
	_, err := t.show(ctx, "a1", "sluicectl", "explain", "--vrf", "1001", "10.10.0.11", "10.20.0.11")
	return err
}
