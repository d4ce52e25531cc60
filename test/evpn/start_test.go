//go:build !guest

package evpn_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/nightly"
)

// sinceStart is what sluiced on a node has logged since its latest start.
func (w *world) sinceStart(node string) string {
	w.Helper()
	log := w.process(node, "sluiced").LogTail(400)
	at := max(0, strings.LastIndex(log, `msg="sluiced starts"`))
	return log[strings.LastIndex(log[:at], "\n")+1:]
}

// startedAt is the time of that.
func (w *world) startedAt(node string) string {
	w.Helper()
	at, _, _ := strings.Cut(w.sinceStart(node), " ")
	return at
}

// restart ends sluiced on a node and starts it again, and waits for its first word.
func (w *world) restart(node string) {
	w.Helper()
	before := w.startedAt(node)
	if err := w.process(node, "sluiced").Restart(); err != nil {
		w.Fatal(err)
	}
	w.eventually("sluiced on "+node+" starts", func() error {
		if w.startedAt(node) == before {
			return errors.New("not yet")
		}
		return nil
	})
}

// logs waits until sluiced on a node has logged something since its latest start.
func (w *world) logs(node, word string) {
	w.Helper()
	w.eventually("sluiced on "+node+" logs: "+word, func() error {
		if log := w.sinceStart(node); !strings.Contains(log, word) {
			return errors.New(tail(log, 500))
		}
		return nil
	})
}

// flowRate has the next start of sluiced on a node load programs with other constants, which
// change nothing of what a test sends. 0: with the usual ones.
func (w *world) flowRate(node string, rate int) {
	w.Helper()
	script := `sed -i '/^loadBalancing:/,$d' "$OVS_RUNDIR/sluiced.yaml"`
	if rate > 0 {
		script += fmt.Sprintf(`; printf 'loadBalancing:\n  newSessionRate: %d\n' >> "$OVS_RUNDIR/sluiced.yaml"`, rate)
	}
	if out, err := w.Exec(background, node, "sh", "-ec", script); err != nil {
		w.Errorf("%v: %s", err, out)
	}
}

// sizes has the next start of sluiced on a node make a map of another size, or the usual one.
func (w *world) sizes(node string, others bool) {
	w.Helper()
	script := `sed -i '/^  sizes:/,/^    hosts:/d' "$OVS_RUNDIR/sluiced.yaml"`
	if others {
		script += `; sed -i 's/^  bpffs:.*/&\n  sizes:\n    hosts: 70000/' "$OVS_RUNDIR/sluiced.yaml"`
	}
	if out, err := w.Exec(background, node, "sh", "-ec", script); err != nil {
		w.Errorf("%v: %s", err, out)
	}
}

const (
	saysOthersRun   = "attached programs are of another build or have other constants"
	saysSession     = "BGP session established"
	saysTold        = "all announcements are handed to BGP"
	saysReplaced    = "program was replaced in place"
	saysAllReplaced = "the programs of this build are loaded"
)

// A start with other programs speaks BGP and announces before it loads them, and loses
// nothing; one that is killed before they are replaced, or in the midst of it, neither, and
// the next start ends as any.
func TestChangedProgramsAreReplacedAfterBGP(t *testing.T) {
	w := shared(t)
	t.Cleanup(func() {
		w.flowRate("a1", 0)
		w.sizes("a1", false)
	})
	streams := w.streams()
	w.flowRate("a1", 30000)
	w.restart("a1")
	w.logs("a1", saysAllReplaced)
	w.ready("a1")
	log, at := w.sinceStart("a1"), -1
	for _, word := range []string{saysOthersRun, saysSession, saysTold, saysReplaced, saysAllReplaced} {
		next := strings.Index(log, word)
		if next <= at {
			t.Errorf("%q is not logged, or too early:\n%s", word, log)
		}
		at = next
	}
	for i, word := range []string{saysOthersRun, saysSession, saysTold, saysReplaced} {
		w.flowRate("a1", 30001+i)
		w.restart("a1")
		w.logs("a1", word)
		w.kill("a1", "sluiced")
	}
	w.flowRate("a1", 0)
	if nightly.On() {
		// Maps of another size: the tables wait for the programs, on a busy machine nearly as
		// long as the other nodes keep what they had.
		w.sizes("a1", true)
		w.restart("a1")
		w.logs("a1", saysSession)
		w.kill("a1", "sluiced")
		w.restart("a1")
		w.ready("a1")
		w.sizes("a1", false)
	}
	w.restart("a1")
	w.ready("a1")
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.announced("b1", vniRed, redRoutes...)
	w.announced("b1", vniBlue, "10.20.0.11/32", "fd00:20::11/128")
	w.changes()
}

// The reflector keeps nothing over the end of a session, and says so: the other nodes keep
// what they had for longer than a start takes.
func TestRestartWithoutGracefulRestart(t *testing.T) {
	w := shared(t)
	w.reflector("bgp graceful-restart-disable")
	defer w.reflector("no bgp graceful-restart-disable")
	w.noGracefulRestart()
	streams := w.streams()
	for range 3 {
		w.restart("a1")
		w.logs("a1", saysTold)
		w.ready("a1")
	}
	w.clean()
	for _, s := range streams {
		sent, lost := s.stop()
		t.Logf("%s: %d of %d lost over three restarts", s.name, lost, sent)
		s.noLoss(sent, lost)
	}
	w.announced("b1", vniRed, redRoutes...)
	if nightly.On() {
		w.gapOfSession()
	}
}

// reflector gives FRR a command of its BGP, and begins its sessions anew.
func (w *world) reflector(command string) {
	w.Helper()
	w.exec("rr", "vtysh", "-c", "configure terminal", "-c", "router bgp 64512", "-c", command, "-c", "end", "-c", "clear bgp *")
	w.connected()
	for _, n := range w.chassis() {
		w.ready(n)
	}
}

// noGracefulRestart makes sure that FRR does none.
func (w *world) noGracefulRestart() {
	w.Helper()
	if said := w.exec("rr", "vtysh", "-c", "show bgp neighbors "+w.node("a1").VTEP4.String()); !strings.Contains(said, "Local GR Mode: Disable") {
		w.Fatalf("the reflector does graceful restart: %s", said)
	}
}

// gapOfSession restarts a1 while b1 keeps nothing of nodes that are away either: what is lost
// is lost in one piece, while a1's routes are away.
func (w *world) gapOfSession() {
	w.Helper()
	const file = ` "$OVS_RUNDIR/sluiced.yaml"`
	linger := func(script string) {
		w.Helper()
		w.exec("b1", "sh", "-ec", script+file)
		w.restart("b1")
		w.logs("b1", saysTold)
		w.ready("b1")
		w.connected()
	}
	linger(`sed -i 's/^bgp:$/bgp:\n  peerLinger: 0s/'`)
	defer linger(`sed -i '/^  peerLinger: 0s$/d'`)
	// Of what it had before its own start it keeps what is not announced for 30 s, which
	// nothing shows.
	time.Sleep(40 * time.Second)
	streams := w.streams()
	w.restart("a1")
	w.logs("a1", saysTold)
	w.ready("a1")
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
	w.announced("a1", vniBlue, "10.10.0.11/32", "fd00:10::11/128")
	w.connected()
	w.clean()
	for _, s := range streams {
		sent, lost := s.stop()
		w.Logf("%s: %d of %d lost, in %d pieces", s.name, lost, sent, s.pieces())
		if s.pieces() > 1 {
			w.Errorf("%s: lost in %d pieces, the first %v", s.name, s.pieces(), s.missing())
		}
	}
}

// pieces is how often packets have begun to stay without an answer.
func (s *stream) pieces() (n int) {
	next := 1
	for _, m := range pingAnswer.FindAllStringSubmatch(s.out.String(), -1) {
		seq, _ := strconv.Atoi(m[1])
		if seq > next {
			n++
		}
		next = max(next, seq+1)
	}
	return n
}
