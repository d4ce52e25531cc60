package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/metadata"
)

// metadataOptions are the sizes of the part metadata.
type metadataOptions struct {
	networks                  string
	clients, requests, rounds int
	bindings, restarts        int
	settle                    time.Duration
}

func (m *metadataOptions) flags() {
	flag.StringVar(&m.networks, "networks", "1,50,500", "numbers of networks for metadata, the largest last")
	flag.IntVar(&m.clients, "clients", 100, "machines that ask for metadata at once")
	flag.IntVar(&m.requests, "requests", 1000, "requests of a round, of one machine or of all together")
	flag.IntVar(&m.rounds, "request-rounds", 5, "rounds of requests")
	flag.IntVar(&m.bindings, "bindings", 100, "bindings of a port to time")
	flag.IntVar(&m.restarts, "restarts", 5, "restarts with the most networks to time")
	flag.DurationVar(&m.settle, "settle", 10*time.Second, "how long processes rest before their memory is read")
}

// measureMetadata measures instance metadata.
func (o options) measureMetadata(ctx context.Context, out io.Writer, rep *report) error {
	binary, err := filepath.Abs(o.sluiced)
	if err != nil {
		return err
	}
	cfg := metadata.Config{
		Sluiced: binary, LabName: o.labName, Clients: o.metadata.clients, Requests: o.metadata.requests, Rounds: o.metadata.rounds,
		Bindings: o.metadata.bindings, Restarts: o.metadata.restarts, Settle: o.metadata.settle, Out: out,
	}
	for word := range strings.SplitSeq(o.metadata.networks, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || len(cfg.Networks) > 0 && n <= cfg.Networks[len(cfg.Networks)-1] {
			return fmt.Errorf("-networks %s: want numbers that grow", o.metadata.networks)
		}
		cfg.Networks = append(cfg.Networks, n)
	}
	results, err := metadata.Run(ctx, cfg)
	rep.all(results)
	return err
}
