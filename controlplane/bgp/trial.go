package bgp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	gobgplog "github.com/osrg/gobgp/v3/pkg/log"
	wire "github.com/osrg/gobgp/v3/pkg/packet/bgp"

	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// Defaults of Trial, and how far its times go.
const (
	DefaultTrialTime  = 10 * time.Second
	DefaultHoldBack   = 5 * time.Second
	trialDeaths       = 3
	longestHoldBack   = 5 * time.Minute
	trialFileVersion  = 1
	trialFileMostRows = 4096
)

// Trial is what keeps a neighbour from ending the process again and again: what it
// sends may be something that the BGP server's parser panics at (doc.go, Limits). A
// session that is younger than Time when the process ends by a panic counts against
// its neighbour. From the third time in a row on the neighbour is held back at the
// start, for HoldBack and then twice as long each time, and those that are held back
// come one after the other, so that it shows which one it is.
type Trial struct {
	// File keeps the counts. Empty: nothing is counted, nobody held back.
	File string
	// Crashed: the last process ended by a panic. Other ends count for nothing.
	Crashed        bool
	Time, HoldBack time.Duration
}

// trials are the sessions that are young and the counts against neighbours.
type trials struct {
	cfg Trial
	log *slog.Logger
	now func() time.Time

	mu sync.Mutex
	// young is since when a session is there or being opened.
	young  map[netip.Addr]time.Time
	deaths map[netip.Addr]int
	until  map[netip.Addr]time.Time
	failed bool // the file could not be written, and the log says so
	over   bool // the process is about to end
}

type trialFile struct {
	Version int                `json:"version"`
	Young   []netip.Addr       `json:"young,omitempty"`
	Deaths  map[netip.Addr]int `json:"deaths,omitempty"`
}

func newTrials(cfg Trial, log *slog.Logger) *trials {
	return &trials{cfg: cfg, log: log, now: time.Now, young: map[netip.Addr]time.Time{}, deaths: map[netip.Addr]int{}, until: map[netip.Addr]time.Time{}}
}

// load counts against those whose sessions were young when the last process died, and
// has those wait that were so several times. A file that cannot be read counts for
// nothing: it must not keep the node from its neighbours.
func (t *trials) load() {
	if t.cfg.File == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b, err := os.ReadFile(t.cfg.File)
	var f trialFile
	if err == nil {
		if err = json.Unmarshal(b, &f); err == nil && f.Version != trialFileVersion {
			err = fmt.Errorf("version %d", f.Version)
		}
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			t.log.Warn("the counts against BGP neighbours cannot be read, and start anew", slog.String("path", t.cfg.File), slog.Any("error", err))
		}
		return
	}
	if f.Deaths != nil && len(f.Deaths) < trialFileMostRows {
		t.deaths = f.Deaths
	}
	for _, a := range f.Young {
		if t.cfg.Crashed {
			t.deaths[a]++
		}
	}
	t.holdBack()
	t.write()
}

// holdBack sets the times of those that wait, the least suspect ones first.
func (t *trials) holdBack() {
	suspects := slices.DeleteFunc(slices.Collect(maps.Keys(t.deaths)), func(a netip.Addr) bool { return t.deaths[a] < trialDeaths })
	slices.SortFunc(suspects, func(a, b netip.Addr) int { return cmp.Or(cmp.Compare(t.deaths[a], t.deaths[b]), a.Compare(b)) })
	for i, a := range suspects {
		hold := t.cfg.HoldBack
		for n := trialDeaths; n < t.deaths[a] && hold < longestHoldBack; n++ {
			hold *= 2
		}
		hold = min(hold, longestHoldBack) + time.Duration(i)*t.cfg.Time
		t.until[a] = t.now().Add(hold)
		t.log.Error("a BGP neighbour is held back, as the daemon has ended each time soon after its session began",
			slog.String("neighbor", a.String()), slog.Int("times", t.deaths[a]), slog.Duration("wait", hold))
	}
}

// note follows the states of sessions. The server reports each before it reads what
// the neighbour sends in it.
func (t *trials) note(event string, f gobgplog.Fields) {
	if event != "state changed" || t.cfg.File == "" {
		return
	}
	a, err := netip.ParseAddr(fmt.Sprint(f["Key"]))
	if err != nil {
		return
	}
	a = a.Unmap().WithZone("")
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over {
		return
	}
	_, was := t.young[a]
	switch fmt.Sprint(f["new"]) {
	case wire.BGP_FSM_OPENSENT.String():
		if t.young[a] = t.now(); was {
			return
		}
	case wire.BGP_FSM_OPENCONFIRM.String(), wire.BGP_FSM_ESTABLISHED.String():
		return
	default:
		if !was {
			return
		}
		delete(t.young, a)
	}
	t.write()
}

// pass forgets what counts against those whose sessions are no longer young.
// established is asked without mu: whoever asks heldBack may hold what it needs.
func (t *trials) pass(established func(netip.Addr) bool) {
	old := t.grown()
	maps.DeleteFunc(old, func(a netip.Addr, _ time.Time) bool { return !established(a) })
	if len(old) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := false
	for a, since := range old {
		if t.over || t.young[a] != since {
			continue // it is a new session
		}
		delete(t.young, a)
		delete(t.deaths, a)
		delete(t.until, a)
		changed = true
	}
	if changed {
		t.write()
	}
}

// grown are the sessions that are old enough, if they are there.
func (t *trials) grown() map[netip.Addr]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := maps.Clone(t.young)
	maps.DeleteFunc(out, func(_ netip.Addr, since time.Time) bool { return t.now().Sub(since) < t.cfg.Time })
	return out
}

// stop is an end of the process that is meant: nothing counts any more.
func (t *trials) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	if t.cfg.File == "" || len(t.young)+len(t.deaths) == 0 {
		return
	}
	clear(t.young)
	clear(t.deaths)
	t.write()
}

// heldBack is until when a neighbour waits, and for how many deaths.
func (t *trials) heldBack(a netip.Addr) (until time.Time, deaths int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	until = t.until[a]
	if !t.now().Before(until) {
		return time.Time{}, 0
	}
	return until, t.deaths[a]
}

// write is called with mu held.
func (t *trials) write() {
	young := slices.SortedFunc(maps.Keys(t.young), netip.Addr.Compare)
	b, err := json.Marshal(trialFile{Version: trialFileVersion, Young: young, Deaths: t.deaths})
	if err == nil {
		err = statefile.Write(t.cfg.File, b)
	}
	if err != nil && !t.failed {
		t.log.Error("the counts against BGP neighbours cannot be written", slog.String("path", t.cfg.File), slog.Any("error", err))
	}
	t.failed = err != nil
}
