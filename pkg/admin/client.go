package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// maxLine bounds one line of a stream.
const maxLine = 16 << 20

// Client asks the daemon. It may be used from several goroutines.
type Client struct {
	program, socket string
	http            *http.Client
	patience        time.Duration
}

// Patience is within which a daemon that is not stuck begins an answer.
const Patience = time.Minute

// grace is how long after its deadline an answer to a request that was sent is waited for.
const grace = 2 * time.Second

// NewClient makes a client of a program that errors name; it connects with the first question.
func NewClient(program, socket string) *Client { return NewClientWithin(program, socket, Patience) }

// NewClientWithin makes a client that waits so long for the beginning of each answer.
func NewClientWithin(program, socket string, patience time.Duration) *Client {
	t := &http.Transport{
		// Never: without the daemon's consent the body is not sent.
		ExpectContinueTimeout: 1000 * time.Hour,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		},
	}
	return &Client{program: program, socket: socket, http: &http.Client{Transport: t}, patience: patience}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call asks an endpoint. When no daemon answers the error wraps ErrNotRunning or ErrSilent; after
// a change it wraps ErrUnknown instead where the change may have been carried out.
func Call[Req, Resp any](ctx context.Context, c *Client, e Endpoint[Req, Resp], req Req) (Resp, error) {
	var out Resp
	body, err := ask(ctx, c, e, req)
	if err != nil {
		return out, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(body).Decode(&out); err != nil {
		return out, fmt.Errorf("answer of %s to %s: %w", c.program, e.path, e.explain(c, err, true))
	}
	return out, nil
}

// Follow asks a streaming endpoint and calls f for each answer, until the
// stream ends, f fails or ctx ends. An ended ctx is no error.
func Follow[Req, Resp any](ctx context.Context, c *Client, e Endpoint[Req, Resp], req Req, f func(Resp) error) error {
	body, err := ask(ctx, c, e, req)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line streamLine[Resp]
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("answer of %s to %s: %w", c.program, e.path, err)
		}
		if line.Error != "" {
			return &remoteError{text: line.Error}
		}
		if line.Value == nil {
			continue
		}
		if err := f(*line.Value); err != nil {
			return err
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("answer of %s to %s: %w", c.program, e.path, err)
	}
	return nil
}

// ask sends a request and waits for the beginning of the answer.
func ask[Req, Resp any](ctx context.Context, c *Client, e Endpoint[Req, Resp], req Req) (io.ReadCloser, error) {
	b, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", e.path, err)
	}
	patience := c.patience
	if end, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(end))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var sent atomic.Bool
	gaveUp := time.AfterFunc(patience, func() {
		if sent.Load() { // the daemon may say that it drops the request
			select {
			case <-ctx.Done():
			case <-time.After(grace):
			}
		}
		cancel(os.ErrDeadlineExceeded)
	})
	defer gaveUp.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { sent.Store(true) }})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+c.program+e.path, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", e.path, err)
	}
	r.Header.Set("Expect", "100-continue")
	setDeadline(r.Header, patience)
	resp, err := c.http.Do(r)
	if err != nil {
		cancel(nil)
		return nil, e.explain(c, err, sent.Load())
	}
	if resp.StatusCode == http.StatusOK {
		return &answer{resp.Body, cancel}, nil
	}
	defer cancel(nil)
	defer func() { _ = resp.Body.Close() }()
	var f failure
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil || f.Error == "" {
		f.Error = c.program + " answered " + resp.Status
	}
	return nil, errorOf(resp.StatusCode, f.Error)
}

// answer is the body of an answer, and the end of its request.
type answer struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (a *answer) Close() error {
	defer a.cancel(nil)
	return a.ReadCloser.Close()
}

// explain says what a person has to know of a request without an answer. sent tells whether the
// daemon may have all of it.
func (e Endpoint[Req, Resp]) explain(c *Client, err error, sent bool) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	silent := os.IsTimeout(err) || errors.Is(err, os.ErrDeadlineExceeded) // of the caller's context, or of the client
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%s is %w (nobody answers on %s)", c.program, ErrNotRunning, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is open to root only: %w", c.socket, fs.ErrPermission)
	case e.changes && sent:
		return fmt.Errorf("%w: %s has accepted the request, and no answer arrived on %s: %w", ErrUnknown, c.program, c.socket, err)
	case e.changes && silent:
		return fmt.Errorf("nothing was changed, and the request is dropped: %s %w on %s", c.program, ErrSilent, c.socket)
	case e.changes:
		return fmt.Errorf("nothing was changed, and the request is dropped: asking %s: %w", c.program, err)
	case silent:
		return fmt.Errorf("%s %w on %s: %w", c.program, ErrSilent, c.socket, err)
	}
	return fmt.Errorf("asking %s: %w", c.program, err)
}
