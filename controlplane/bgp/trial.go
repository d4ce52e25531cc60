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
// come one after the other, so that it shows which one it is. It may be none of them:
// so they come within half the restart time, after which the others would drop this
// node's routes. Only one that is alone in this, while others are not, waits longer.
type Trial struct {
	// File keeps the counts. Empty: nothing is counted, nobody held back.
	File string
	// Crashed: the last process ended by a panic. Other ends count for nothing.
	Crashed        bool
	Time, HoldBack time.Duration
}

// trials are the sessions that are young and the counts against neighbours. A
// neighbour has the name of its link, where it is found by that: it may take another
// address each time. Else it has its address, without an interface.
type trials struct {
	cfg Trial
	// limit is for how long a neighbour is held back that may not be the one.
	limit time.Duration
	names []string // of all neighbours
	log   *slog.Logger
	now   func() time.Time

	mu     sync.Mutex // guards what follows
	links  map[netip.Addr]string
	young  map[string]youth
	deaths map[string]int
	until  map[string]time.Time
	dirty  bool // what the file says is not all
	over   bool // the process is about to end

	// writing is held while the file is written, without mu: whoever waits for mu may
	// be in the BGP server's state machines.
	writing sync.Mutex
	failed  bool // the file could not be written, and the log says so
}

// youth is a session that is there or being opened.
type youth struct {
	neighbor netip.Addr
	since    time.Time
}

type trialFile struct {
	Version int            `json:"version"`
	Young   []string       `json:"young,omitempty"`
	Deaths  map[string]int `json:"deaths,omitempty"`
}

func newTrials(cfg Config, log *slog.Logger) *trials {
	t := &trials{cfg: cfg.Trial, limit: cfg.RestartTime / 2, log: log, now: time.Now,
		links: map[netip.Addr]string{}, young: map[string]youth{}, deaths: map[string]int{}, until: map[string]time.Time{}}
	for _, n := range cfg.Neighbors {
		name := n.Interface
		if name == "" {
			name = n.Address.WithZone("").String()
		}
		t.names = append(t.names, name)
	}
	return t
}

// follow is told which address the neighbour of a link has; old is that of before, if
// there was one.
func (t *trials) follow(link string, old, now netip.Addr) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.links, old.WithZone(""))
	t.links[now.WithZone("")] = link
	if y, young := t.young[link]; young && y.neighbor == old.WithZone("") {
		delete(t.young, link)
		t.dirty = true
	}
}

// name is called with mu held.
func (t *trials) name(a netip.Addr) string {
	if link := t.links[a]; link != "" {
		return link
	}
	return a.String()
}

// load counts against those whose sessions were young when the last process died, and
// has those wait that were so several times. A file that cannot be read counts for
// nothing: it must not keep the node from its neighbours.
func (t *trials) load() {
	if t.cfg.File == "" {
		return
	}
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
	t.count(f)
	t.write()
}

func (t *trials) count(f trialFile) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.Deaths != nil && len(f.Deaths) < trialFileMostRows {
		t.deaths = f.Deaths
	}
	for _, name := range f.Young {
		if t.cfg.Crashed {
			t.deaths[name]++
		}
	}
	// Who is no neighbour any more does not come.
	maps.DeleteFunc(t.deaths, func(name string, _ int) bool { return !slices.Contains(t.names, name) })
	t.holdBack()
}

// holdBack sets the times of those that wait, the least suspect ones first. It is
// called with mu held.
func (t *trials) holdBack() {
	suspects := slices.DeleteFunc(slices.Collect(maps.Keys(t.deaths)), func(name string) bool { return t.deaths[name] < trialDeaths })
	slices.SortFunc(suspects, func(a, b string) int { return cmp.Or(cmp.Compare(t.deaths[a], t.deaths[b]), cmp.Compare(a, b)) })
	longest, gap := longestHoldBack, time.Duration(0)
	if n := len(suspects); n > 1 || len(t.names) == n {
		gap = min(t.cfg.Time, t.limit/time.Duration(2*max(n, 1)))
		longest = t.limit - gap*time.Duration(n-1)
	}
	for i, name := range suspects {
		hold := t.cfg.HoldBack
		for n := trialDeaths; n < t.deaths[name] && hold < longest; n++ {
			hold *= 2
		}
		hold = min(hold, longest) + time.Duration(i)*gap
		t.until[name] = t.now().Add(hold)
		t.log.Error("a BGP neighbour is held back, as the daemon has ended each time soon after its session began",
			slog.String("neighbor", name), slog.Int("times", t.deaths[name]), slog.Duration("wait", hold))
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
	if t.took(a.Unmap().WithZone(""), fmt.Sprint(f["new"])) {
		t.write()
	}
}

// took follows one neighbour, and tells whether the file has to say so before the
// server goes on.
func (t *trials) took(a netip.Addr, state string) (now bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := t.name(a)
	was, young := t.young[name]
	switch state {
	case wire.BGP_FSM_OPENSENT.String():
		if t.over {
			return false
		}
		t.young[name] = youth{neighbor: a, since: t.now()}
		return !young
	case wire.BGP_FSM_OPENCONFIRM.String(), wire.BGP_FSM_ESTABLISHED.String():
	default:
		if young && was.neighbor == a {
			delete(t.young, name)
			t.dirty = true
		}
	}
	return false
}

// pass forgets what counts against those whose sessions are no longer young, and
// writes what has changed. established is asked without mu: whoever asks heldBack may
// hold what it needs.
func (t *trials) pass(established func(netip.Addr) bool) {
	old := t.grown()
	maps.DeleteFunc(old, func(_ string, y youth) bool { return !established(y.neighbor) })
	if t.forget(old) {
		t.write()
	}
}

func (t *trials) forget(old map[string]youth) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, y := range old {
		if t.over || t.young[name] != y {
			continue // it is a new session
		}
		delete(t.young, name)
		delete(t.deaths, name)
		delete(t.until, name)
		t.dirty = true
	}
	return t.dirty && !t.over
}

// grown are the sessions that are old enough, if they are there.
func (t *trials) grown() map[string]youth {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := maps.Clone(t.young)
	maps.DeleteFunc(out, func(_ string, y youth) bool { return t.now().Sub(y.since) < t.cfg.Time })
	return out
}

// stop is an end of the process that is meant: nothing counts any more.
func (t *trials) stop() {
	t.mu.Lock()
	counted := len(t.young)+len(t.deaths) > 0 || t.dirty
	t.over = true
	clear(t.young)
	clear(t.deaths)
	t.mu.Unlock()
	if counted && t.cfg.File != "" {
		t.write()
	}
}

// heldBack is until when a neighbour waits, and for how many deaths.
func (t *trials) heldBack(a netip.Addr) (until time.Time, deaths int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := t.name(a)
	until = t.until[name]
	if !t.now().Before(until) {
		return time.Time{}, 0
	}
	return until, t.deaths[name]
}

// write has the file say what is so now. It is called without mu.
func (t *trials) write() {
	t.writing.Lock()
	defer t.writing.Unlock()
	b, err := t.content()
	if err == nil {
		err = statefile.Write(t.cfg.File, b)
	}
	if err != nil {
		t.again()
	}
	if err != nil && !t.failed {
		t.log.Error("the counts against BGP neighbours cannot be written", slog.String("path", t.cfg.File), slog.Any("error", err))
	}
	t.failed = err != nil
}

// again has pass write what could not be written.
func (t *trials) again() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty = true
}

func (t *trials) content() ([]byte, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.dirty = false
	return json.Marshal(trialFile{Version: trialFileVersion, Young: slices.Sorted(maps.Keys(t.young)), Deaths: t.deaths})
}
