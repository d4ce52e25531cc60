package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server answers with its name, and notes from where it was asked.
func server(t *testing.T, name string, status int) (at netip.AddrPort, asked func() []uint16) {
	t.Helper()
	var (
		mu    sync.Mutex
		ports []uint16
	)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := netip.MustParseAddrPort(r.RemoteAddr)
		mu.Lock()
		ports = append(ports, from.Port())
		mu.Unlock()
		w.WriteHeader(status)
		fmt.Fprintf(w, "%s %s\n", name, from)
	}))
	t.Cleanup(s.Close)
	return netip.MustParseAddrPort(strings.TrimPrefix(s.URL, "http://")), func() []uint16 {
		mu.Lock()
		defer mu.Unlock()
		return slices.Sorted(slices.Values(ports))
	}
}

// serve gives orders to Serve and reads what came of them.
func serve(t *testing.T, orders ...Order) (out []Outcome) {
	t.Helper()
	var text strings.Builder
	for _, o := range orders {
		b, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(b, '\n'))
	}
	var lines strings.Builder
	if err := Serve(t.Context(), strings.NewReader(text.String()), &lines); err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(lines.String())); ; {
		var o Outcome
		if err := d.Decode(&o); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
}

// from is a port of an address that no run before has used: ports rest after a connection.
func from(port uint16) netip.AddrPort {
	n := rand.Uint32()
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, byte(1 + n>>16%254), byte(n >> 8), byte(1 + n%254)}), port)
}

// Requests go to all servers in turns, each from a port of its own.
func TestServe(t *testing.T) {
	first, askedFirst := server(t, "be1", http.StatusOK)
	second, askedSecond := server(t, "be2", http.StatusOK)
	order := Order{To: []netip.AddrPort{first, second}, From: from(21000), Clients: 4, Each: 3}
	again := order
	again.From = from(21012)
	for i, got := range serve(t, order, again) {
		if got.Failed != "" || len(got.Took) != 12 || len(got.PerSecond) != 1 || got.PerSecond[0] <= 0 || got.Processor <= 0 {
			t.Errorf("round %d: %+v", i, got)
		}
		if got.Answers["be1"] != 6 || got.Answers["be2"] != 6 || len(got.Answers) != 2 {
			t.Errorf("round %d was answered by %v", i, got.Answers)
		}
	}
	ports := slices.Sorted(slices.Values(slices.Concat(askedFirst(), askedSecond())))
	if len(ports) != 24 || ports[0] != 21000 || ports[23] != 21023 || len(slices.Compact(ports)) != 24 {
		t.Errorf("asked from %v", ports)
	}
}

// What is no answer, and what cannot be asked, fails, and the next round is made.
func TestServeFails(t *testing.T) {
	bad, _ := server(t, "be1", http.StatusTeapot)
	good, _ := server(t, "be1", http.StatusOK)
	got := serve(t,
		Order{To: []netip.AddrPort{bad}, From: from(21100), Clients: 1, Each: 1},
		Order{From: from(21100), Clients: 1, Each: 1},
		Order{To: []netip.AddrPort{good}, From: from(65535), Clients: 1, Each: 2},
		Order{To: []netip.AddrPort{good}, From: from(21101), Clients: 1, Each: 1},
	)
	if len(got) != 4 {
		t.Fatalf("%d outcomes", len(got))
	}
	for i, want := range []string{"status 418", "a port for each", "a port for each", ""} {
		if !strings.Contains(got[i].Failed, want) || (want == "") != (got[i].Failed == "") {
			t.Errorf("round %d: %q, want %q", i, got[i].Failed, want)
		}
	}
}

// A round with an error leaves the samples as they were.
func TestRound(t *testing.T) {
	var s Samples
	ask := func(_ context.Context, client, i int) (time.Duration, error) {
		return time.Duration(10*client+i) * time.Millisecond, nil
	}
	if err := s.Round(t.Context(), 2, 2, ask); err != nil {
		t.Fatal(err)
	}
	if err := s.Round(t.Context(), 2, 2, func(_ context.Context, client, i int) (time.Duration, error) {
		return 0, fmt.Errorf("client %d, request %d", client, i)
	}); err == nil || !strings.Contains(err.Error(), "client 1, request 0") {
		t.Errorf("got %v", err)
	}
	if err := s.Round(t.Context(), 1, 1, ask); err != nil {
		t.Fatal(err)
	}
	s.Forget(1, 4)
	if len(s.PerSecond) != 1 || !slices.Equal(s.Took, []time.Duration{0}) {
		t.Errorf("left are %+v", s)
	}
}
