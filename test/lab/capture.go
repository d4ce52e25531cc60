package lab

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gopacket/gopacket/pcapgo"
)

// Packet is one captured frame.
type Packet struct {
	Time time.Time
	Data []byte
}

// Capture is a running capture on one interface.
type Capture struct {
	cmd  *exec.Cmd
	file string
	done chan struct{}
	// counts gets tcpdump's own count after each SIGUSR1; last is the one at its
	// end, to be read when done is closed.
	counts chan captureCount
	last   captureCount
}

// captureCount is what tcpdump says of itself: frames that matched the filter,
// those of them that it has written, and those that found its buffer full.
type captureCount struct{ written, matched, dropped int }

// Capture starts to record the frames of an interface of a node that match a
// tcpdump filter ("" for all). It returns once frames are being recorded.
func (l *Lab) Capture(ctx context.Context, node, iface, filter string) (*Capture, error) {
	n, err := l.Node(node)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(l.dir, "capture-*.pcap")
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	// In immediate mode each frame takes a slot of the snapshot length: 16 MiB
	// are 1,800 frames here, and 64 of the largest length.
	argv := []string{"tcpdump", "-Z", "root", "-n", "-U", "--immediate-mode", "-s", "9216", "-B", "16384", "-i", iface, "-w", f.Name()}
	if filter != "" {
		argv = append(argv, filter)
	}
	c := &Capture{cmd: l.command(ctx, n, argv...), file: f.Name(), done: make(chan struct{}), counts: make(chan captureCount)}
	stderr, err := c.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("capturing on %s %s: %w", node, iface, err)
	}
	if err := c.awaitListening(stderr); err != nil {
		return nil, errors.Join(fmt.Errorf("capturing on %s %s: %w", node, iface, err), os.Remove(c.file))
	}
	return c, nil
}

// awaitListening reads tcpdump's messages up to the one that says that it
// records, and leaves a goroutine that reads the rest and reaps it.
func (c *Capture) awaitListening(stderr io.Reader) error {
	r := bufio.NewReader(stderr)
	var said strings.Builder
	for {
		line, err := r.ReadString('\n')
		said.WriteString(line)
		if err != nil {
			return fmt.Errorf("%w: %s", errors.Join(c.cmd.Wait(), err), strings.TrimSpace(said.String()))
		}
		if strings.Contains(line, "listening on") {
			break
		}
	}
	go func() {
		defer close(c.done)
		c.readCounts(r)
		_ = c.cmd.Wait()
	}()
	return nil
}

var (
	writtenRE = regexp.MustCompile(`(\d+) packets? captured`)
	matchedRE = regexp.MustCompile(`(\d+) packets? received by filter`)
	droppedRE = regexp.MustCompile(`(\d+) packets? dropped by kernel`)
)

// readCounts passes tcpdump's counts on to whoever waits for one.
func (c *Capture) readCounts(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		for re, into := range map[*regexp.Regexp]*int{writtenRE: &c.last.written, matchedRE: &c.last.matched, droppedRE: &c.last.dropped} {
			if m := re.FindStringSubmatch(line); m != nil {
				*into, _ = strconv.Atoi(m[1])
			}
		}
		if droppedRE.MatchString(line) { // the last part of a count
			select {
			case c.counts <- c.last:
			case <-time.After(catchUpPoll):
			}
		}
		if err != nil {
			return
		}
	}
}

const (
	catchUpPoll  = 20 * time.Millisecond
	catchUpPolls = 250
)

// catchUp waits until tcpdump has written all that it was given: what it has not
// read when it is told to end is lost.
func (c *Capture) catchUp() {
	for range catchUpPolls {
		if c.cmd.Process.Signal(syscall.SIGUSR1) != nil {
			return
		}
		select {
		case n := <-c.counts:
			if n.written+n.dropped >= n.matched {
				return
			}
		case <-c.done:
			return
		case <-time.After(catchUpPoll):
		}
		time.Sleep(catchUpPoll)
	}
}

// Packets are the frames recorded so far.
func (c *Capture) Packets() ([]Packet, error) {
	f, err := os.Open(c.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Packet
	for {
		data, info, err := r.ReadPacketData()
		// A record that is being written is read the next time.
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, Packet{Time: info.Timestamp, Data: data})
	}
}

// Count is the number of frames recorded so far.
func (c *Capture) Count() (int, error) {
	p, err := c.Packets()
	return len(p), err
}

// Stop ends the capture and returns all frames; an incomplete capture is an
// error. A second call returns an error.
func (c *Capture) Stop() ([]Packet, error) {
	c.catchUp()
	if err := c.cmd.Process.Signal(syscall.SIGINT); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return nil, err
	}
	<-c.done
	p, err := c.Packets()
	if c.last.dropped > 0 {
		err = errors.Join(err, fmt.Errorf("the capture misses %d of %d frames: its buffer was full", c.last.dropped, c.last.matched))
	}
	return p, errors.Join(err, os.Remove(c.file))
}
