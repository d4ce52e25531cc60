package evpn_test

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stream is a ping that goes on while things happen.
type stream struct {
	w    *world
	name string
	cmd  *exec.Cmd
	out  strings.Builder
	last int // the last packet that was answered
	// begun is when it was started.
	begun time.Time
}

// stream starts a ping, 100 packets a second.
func (w *world) stream(vm, addr string, more ...string) *stream {
	w.Helper()
	argv := append([]string{"ping", "-n", "-i", "0.01", "-W", "5"}, more...)
	cmd, err := w.Command(w.Context(), vm, append(argv, addr)...)
	if err != nil {
		w.Fatal(err)
	}
	s := &stream{w: w, name: vm + " to " + addr, cmd: cmd, begun: time.Now()}
	cmd.Stdout = &s.out
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	return s
}

// streams is one in each direction, per tenant and family.
func (w *world) streams() []*stream {
	w.Helper()
	w.counted = w.tally()
	var out []*stream
	for _, vm := range vms {
		for _, addr := range far(vm) {
			out = append(out, w.stream(vm, addr))
		}
	}
	return out
}

// tailPackets is how many packets at the end of a stopped ping may be on their way.
const tailPackets = 50

// stop ends the ping and returns the packets sent and those without an answer,
// up to the last one that was answered.
func (s *stream) stop() (sent, lost int) {
	s.w.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		s.w.Fatal(err)
	}
	sent, lost = s.wait()
	if onTheWay := sent - s.last; onTheWay <= tailPackets {
		return s.last, lost - onTheWay
	}
	return sent, lost
}

var pingAnswer = regexp.MustCompile(`(?m)^\d+ bytes from .* icmp_seq=(\d+) `)

// wait lets the ping come to its own end.
func (s *stream) wait() (sent, lost int) {
	s.w.Helper()
	_ = s.cmd.Wait() // the summary says more than the exit code
	m := pingSummary.FindStringSubmatch(s.out.String())
	if m == nil {
		s.w.Fatalf("ping %s said: %s", s.name, tail(s.out.String(), 1000))
	}
	sent, _ = strconv.Atoi(m[1])
	received, _ := strconv.Atoi(m[2])
	if all := pingAnswer.FindAllStringSubmatch(s.out.String(), -1); len(all) > 0 {
		s.last, _ = strconv.Atoi(all[len(all)-1][1])
	}
	return sent, sent - received
}

func (s *stream) noLoss(sent, lost int) {
	s.w.Helper()
	if lost != 0 || sent == 0 {
		s.w.Errorf("%s, from %s: %d of %d lost, without an answer first %v:\n%s", s.name, s.begun.Format(time.StampMilli), lost, sent, s.missing(), tail(s.out.String(), 400))
	}
}

// missing are the first packets without an answer: at 100 a second they tell when.
func (s *stream) missing() (out []int) {
	next := 1
	for _, m := range pingAnswer.FindAllStringSubmatch(s.out.String(), -1) {
		n, _ := strconv.Atoi(m[1])
		for ; next < n && len(out) < 20; next++ {
			out = append(out, next)
		}
		next = max(next, n+1)
	}
	return out
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }
