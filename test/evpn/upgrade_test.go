//go:build !guest

package evpn_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// refusal is what a sluiced says of maps that a newer one has pinned.
const refusal = "a newer Sluice wrote this directory"

// An older sluiced runs, with traffic, and this one takes over; then the older one
// again, or it refuses and says why; then this one, after a crash. No packet is lost in
// any of the steps.
func TestUpgrade(t *testing.T) {
	releases := map[string]func(repository) (string, string, error){"from the previous commit": repository.previous}
	if nightly.On() {
		releases["from before the last change of the maps"] = repository.beforeLayout
	}
	for name, choose := range releases {
		t.Run(name, func(t *testing.T) {
			u := newUpgrade(t, older(t, choose))
			before := u.layout("a1")
			u.lossless("upgrade", func() { u.takesOver(u.newer, syscall.SIGTERM, u.chassis()...) })
			u.announced("b1", vniRed, redRoutes...)
			u.recordUpgrade(fmt.Sprintf("from %s: no packet lost; pinned maps: %s", u.older.what, u.layoutChange(before)))
			u.lossless("downgrade", func() { u.downgrade("a1", "b1") })
			u.lossless("upgrade again", func() { u.takesOver(u.newer, syscall.SIGKILL, "a1", "b1") })
			u.announced("b1", vniRed, redRoutes...)
		})
	}
	if nightly.On() {
		t.Run("without graceful restart at the neighbour", upgradeWithoutGracefulRestart)
	}
}

// Of an upgrade and a way back nothing is lost but in the gap of the sessions: for each start in
// one piece at most. The other nodes keep the routes of one that is away for a while, so that it is
// nothing here.
func upgradeWithoutGracefulRestart(t *testing.T) {
	u := newUpgrade(t, older(t, repository.previous))
	u.reflector("bgp graceful-restart-disable")
	u.noGracefulRestart()
	gap := func(what string, change func()) {
		streams := u.streams()
		change()
		u.announced("b1", vniRed, redRoutes...)
		for _, s := range streams {
			sent, lost := s.stop()
			t.Logf("%s, %s: %d of %d lost, in %d pieces", what, s.name, lost, sent, s.pieces())
			if s.pieces() > 1 {
				t.Errorf("%s, %s: lost in %d pieces, the first %v", what, s.name, s.pieces(), s.missing())
			}
		}
	}
	gap("upgrade", func() { u.takesOver(u.newer, syscall.SIGTERM, "a1") })
	gap("downgrade", func() { u.downgrade("a1") })
}

// Maps that a newer build has pinned are left alone: the build that does not know them
// says so, and what to do; what runs goes on forwarding, and the newer one goes on with
// it.
func TestDowngradeIsRefused(t *testing.T) {
	w := shared(t)
	streams := w.streams()
	const newer = `for pin in $(find "$SLUICE_BPFFS" -name 'hosts_v*'); do mv "$pin" "${pin%%_v*}_v%s"; done`
	w.kill("a1", "sluiced")
	was := w.exec("a1", "sh", "-c", `find "$SLUICE_BPFFS" -name 'hosts_v*' -printf '%f'`)
	w.exec("a1", "sh", "-ec", fmt.Sprintf(newer, "99"))
	w.startAgain("a1", "sluiced")
	w.eventually("it refuses, and says what to do", func() error { return w.refused("a1") })
	w.reach("a-red1", addrB4, addrB6)
	w.kill("a1", "sluiced")
	// This build's cleanup would leave the newer map, which stops its start all the same.
	out := w.exec("a1", "sh", "-c", sluicectl()+` cleanup --config "$OVS_RUNDIR/sluiced.yaml" 2>&1; test $? = 1`)
	if !strings.Contains(out, "nothing is removed") || !strings.Contains(out, refusal) {
		w.Errorf("cleanup: %s", out)
	}
	w.exec("a1", "sh", "-ec", fmt.Sprintf(newer, strings.TrimPrefix(was, "hosts_v")))
	w.startAgain("a1", "sluiced")
	w.ready("a1")
	w.clean()
	for _, s := range streams {
		s.noLoss(s.stop())
	}
	w.announced("a1", vniRed, "10.10.0.11/32", "fd00:10::11/128")
}

// refused tells whether sluiced on a node says that it does not take what is pinned.
func (w *world) refused(node string) error {
	p, err := w.Process(node, "sluiced")
	if err != nil {
		return err
	}
	if !p.Running() {
		if log := p.LogTail(5); !strings.Contains(log, refusal) {
			return fmt.Errorf("it has ended: %s", log)
		}
		return nil
	}
	s, err := w.status(node)
	if err != nil {
		return err
	}
	for _, c := range s.Conditions {
		if !c.Ready && strings.Contains(c.Detail, refusal) && strings.Contains(c.Detail, "sluicectl cleanup") {
			return nil
		}
	}
	return fmt.Errorf("conditions: %+v", s.Conditions)
}

// upgrade is a lab in which releases follow each other.
type upgrade struct {
	*world
	older, newer release
}

func newUpgrade(t *testing.T, old release) *upgrade {
	t.Helper()
	u := &upgrade{world: &world{T: t, Lab: labtest.Up(t, lab.EVPN(lab.EVPNParams{}))}, older: old}
	u.newer = release{binary: filepath.Join(bin, "sluiced"), what: "this one"}
	said, err := exec.Command(u.newer.binary, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	u.newer.version = strings.TrimPrefix(strings.TrimSpace(string(said)), "sluiced ")
	for _, n := range u.chassis() {
		if err := u.run(n, old); err != nil {
			t.Fatal(err)
		}
		u.ready(n)
		u.runs(n, old)
	}
	u.connected()
	u.clean()
	return u
}

func (u *upgrade) run(node string, r release) error {
	// An earlier sluiced does not know the times of labs: this test runs with the defaults.
	text := fmt.Sprintf(strings.Replace(lab.Config, lab.Times, "", 1), u.node("rr").VTEP4)
	_, err := u.StartSluiced(u.Context(), node, lab.Sluiced{Binary: r.binary, Config: text})
	return err
}

// runs makes sure that it is this release that answers.
func (u *upgrade) runs(node string, r release) {
	u.Helper()
	if s, err := u.status(node); err != nil || !strings.Contains(s.Version, r.version) {
		u.Fatalf("sluiced on %s is %s, not %s: %v", node, s.Version, r.version, err)
	}
}

func (u *upgrade) end(node string, how syscall.Signal) {
	u.Helper()
	end := u.process(node, "sluiced").Stop
	if how == syscall.SIGKILL {
		end = u.process(node, "sluiced").Kill
	}
	if err := end(); err != nil {
		u.Fatal(err)
	}
}

// takesOver ends what runs on nodes, and starts a release that finishes what it finds.
func (u *upgrade) takesOver(r release, how syscall.Signal, nodes ...string) {
	u.Helper()
	for _, n := range nodes {
		u.end(n, how)
		if err := u.run(n, r); err != nil {
			u.Fatal(err)
		}
	}
	for _, n := range nodes {
		u.eventually(r.version+" has finished on "+n, func() error { return errors.Join(u.allReady(n), u.settled(n)) })
		u.runs(n, r)
	}
}

// downgrade starts the older release on what the newer one has pinned.
func (u *upgrade) downgrade(nodes ...string) {
	u.Helper()
	failed := map[string]error{}
	for _, n := range nodes {
		u.end(n, syscall.SIGTERM)
		failed[n] = u.run(n, u.older)
	}
	for _, n := range nodes {
		u.eventually(u.older.version+" on "+n+" works, or refuses", func() error {
			refused := u.refused(n)
			if refused == nil {
				u.recordUpgrade("back on " + n + ": refused")
				return nil
			}
			if failed[n] != nil {
				return lab.Fatal(errors.Join(failed[n], refused))
			}
			if err := errors.Join(u.allReady(n), u.settled(n)); err != nil {
				return err
			}
			u.runs(n, u.older)
			u.recordUpgrade("back on " + n + ": it works")
			return nil
		})
	}
}

// lossless lets all virtual machines talk while fn runs.
func (u *upgrade) lossless(what string, fn func()) {
	u.Helper()
	streams := u.streams()
	begin := time.Now()
	fn()
	sent := 0
	for _, s := range streams {
		n, lost := s.stop()
		s.noLoss(n, lost)
		sent += n
	}
	u.Logf("%s: %d packets, %d ms", what, sent, time.Since(begin).Milliseconds())
}

// layout are the names of the pinned maps.
func (u *upgrade) layout(node string) string {
	u.Helper()
	return sorted(u.exec(node, "sh", "-c", `find "$SLUICE_BPFFS" -type f -name '*_v[0-9]*' -printf '%f\n'`))
}

// layoutChange names the maps that are new, and those that are no more.
func (u *upgrade) layoutChange(before string) string {
	u.Helper()
	was, is := strings.Fields(before), strings.Fields(u.layout("a1"))
	out := strings.Join(missing(is, was), " ")
	if gone := missing(was, is); len(gone) > 0 {
		out += " for " + strings.Join(gone, " ")
	}
	if out == "" {
		return "the same"
	}
	return "new " + out
}

// recordUpgrade writes a line that tools/suite shows in the end: what was
// compared matters when all is well, too.
func (u *upgrade) recordUpgrade(line string) {
	u.Helper()
	u.Log(line)
	f, err := os.OpenFile(filepath.Join("..", "..", "build", "upgrade.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = fmt.Fprintln(f, line)
		err = errors.Join(err, f.Close())
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		u.Error(err)
	}
}
