package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// patience bounds a request.
const patience = 10 * time.Second

// Order is a round of requests to servers of package backend.
type Order struct {
	// To are asked in turns.
	To []netip.AddrPort
	// From is where the first connection comes from; each of the others has the next port.
	From netip.AddrPort
	// Clients ask at once, each of them Each times.
	Clients, Each int
}

// requests is how many there are, and how many ports they take.
func (o Order) requests() int { return o.Clients * o.Each }

// Outcome is what a round was like.
type Outcome struct {
	Samples
	// Answers are counted by their first word, the server's name.
	Answers map[string]int
	// Processor is the time that the generator has used for it.
	Processor time.Duration
	// Failed says why there was no such round, or is empty.
	Failed string
}

// make does as the order says.
func (o Order) make(ctx context.Context) (out Outcome, err error) {
	if last := int(o.From.Port()) + o.requests() - 1; len(o.To) == 0 || o.From.Port() == 0 || last > 65535 {
		return out, fmt.Errorf("%d requests from %s to %d servers: a port for each is needed", o.requests(), o.From, len(o.To))
	}
	before, err := processor()
	if err != nil {
		return out, err
	}
	var mu sync.Mutex
	out.Answers = map[string]int{}
	err = out.Round(ctx, o.Clients, o.Each, func(ctx context.Context, client, i int) (time.Duration, error) {
		number := client + i*o.Clients
		name, took, err := o.one(ctx, number)
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			out.Answers[name]++
		}
		return took, err
	})
	after, cpuErr := processor()
	out.Processor = after - before
	return out, errors.Join(err, cpuErr)
}

// one makes a request and gives the server's name.
func (o Order) one(ctx context.Context, number int) (name string, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to := o.To[number%len(o.To)]
	from := &net.TCPAddr{IP: o.From.Addr().AsSlice(), Port: int(o.From.Port()) + number}
	body, took, err := Request{
		URL: "http://" + to.String() + "/",
		Dial: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{LocalAddr: from}).DialContext(ctx, "tcp", to.String())
		},
	}.Get(ctx)
	if err != nil {
		return "", took, fmt.Errorf("%s from port %d: %w", to, from.Port, err)
	}
	name, _, _ = strings.Cut(body, " ")
	return name, took, nil
}

// processor is the time that this process has used.
func processor() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, fmt.Errorf("processor time of the generator: %w", err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}

// Serve makes the rounds that it reads, one after the other, until there are no more.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	orders, outcomes := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var o Order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading an order: %w", err)
		}
		done, err := o.make(ctx)
		if err != nil {
			done.Failed = err.Error()
		}
		if err := outcomes.Encode(done); err != nil {
			return fmt.Errorf("writing an outcome: %w", err)
		}
	}
}

// Generator is a process that runs Serve. It is for one goroutine.
type Generator struct {
	cmd    *exec.Cmd
	orders io.WriteCloser
	in     *json.Decoder
}

// Start starts the command as a generator.
func Start(cmd *exec.Cmd) (*Generator, error) {
	cmd.Stderr = os.Stderr
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	outcomes, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("starting a generator: %w", err)
	}
	return &Generator{cmd: cmd, orders: orders, in: json.NewDecoder(outcomes)}, nil
}

// Round has a round made.
func (g *Generator) Round(o Order) (out Outcome, err error) {
	if err := json.NewEncoder(g.orders).Encode(o); err != nil {
		return out, fmt.Errorf("ordering a round: %w", err)
	}
	if err := g.in.Decode(&out); err != nil {
		return out, fmt.Errorf("the outcome of a round: %w", err)
	}
	if out.Failed != "" {
		err = fmt.Errorf("%d requests of %d clients: %s", o.requests(), o.Clients, out.Failed)
	}
	return out, err
}

// Stop ends the generator.
func (g *Generator) Stop() error { return errors.Join(g.orders.Close(), g.cmd.Wait()) }
