package metadata

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/bench/load"
	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/haproxy"
	"github.com/ovn-sluice/sluice/test/nova"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The classic form answers each network with its own data, and goes without a trace.
func TestClassic(t *testing.T) {
	const networks = 3
	b := &bench{Config: Config{Settle: 50 * time.Millisecond, Requests: 30, Clients: networks, Rounds: 1, Out: io.Discard}}
	n := nova.New(nova.Config{Secret: "x"})
	agent := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		instance := r.Header.Get(haproxy.NetworkHeader)
		n.As(instance, projectOf(instance)).ServeHTTP(w, r)
	})
	c := &classicSide{bench: b, agent: func(socket string) (func(), error) {
		l, err := net.Listen("unix", socket)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error)
		go func() { served <- serve(ctx, l, agent) }()
		return func() {
			cancel()
			if err := <-served; err != nil {
				t.Error(err)
			}
		}, nil
	}}
	for i := range networks {
		n.Put(nova.Instance{ID: c.instance(i), Project: projectOf(c.instance(i))})
	}
	t.Cleanup(func() {
		if err := c.down(); err != nil {
			t.Error(err)
		}
		left, err := os.ReadDir("/run/netns")
		for _, ns := range left {
			if strings.HasPrefix(ns.Name(), fmt.Sprintf("slmd%d-", os.Getpid())) {
				t.Errorf("%s is left behind, %v", ns.Name(), err)
			}
		}
	})
	if err := c.up(t.Context(), networks); err != nil {
		t.Fatal(err)
	}
	if c.used.user < networks<<20 {
		t.Errorf("%d haproxies use %d bytes", networks, c.used.user)
	}
	var l load.Samples
	if err := round(t.Context(), &l, c.clients(networks), b.Requests); err != nil {
		t.Fatal(err)
	}
	if len(l.Took) != b.Requests || len(l.PerSecond) != 1 || measure.Quantile(l.Took, 0.5) > measure.Quantile(l.Took, 0.99) {
		t.Errorf("%d requests, %v rounds", len(l.Took), l.PerSecond)
	}
	wrong := client{space: netns.Named(c.machine(0)), to: "169.254.169.254:80", instance: c.instance(1)}
	if _, err := wrong.ask(t.Context(), time.Minute); err == nil {
		t.Error("an answer of another network passes")
	}
	b.compare(networks, l, l, l)
	b.compare(1, l, l, l)
	b.Networks = []int{1, 3}
	b.growth([]memory{{1, 1}, {2, 2}}, []memory{{1, 1}, {200, 200}})
	for _, r := range b.results {
		t.Logf("%s: %g %s, goal %v, %s", r.Name, r.Value, r.Unit, r.Goal, r.Note)
	}
}
