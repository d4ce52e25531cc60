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
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxLine bounds one line of a stream.
const maxLine = 16 << 20

// Client asks the daemon. It may be used from several goroutines.
type Client struct {
	socket string
	http   *http.Client
}

// patience is within which a daemon that is not stuck begins an answer.
const patience = time.Minute

// NewClient makes a client; it connects with the first question.
func NewClient(socket string) *Client { return newClient(socket, patience) }

func newClient(socket string, patience time.Duration) *Client {
	t := &http.Transport{ResponseHeaderTimeout: patience, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	return &Client{socket: socket, http: &http.Client{Transport: t}}
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Call asks an endpoint. When no daemon answers the error wraps ErrNotRunning or ErrSilent.
func Call[Req, Resp any](ctx context.Context, c *Client, e Endpoint[Req, Resp], req Req) (Resp, error) {
	var out Resp
	body, err := c.ask(ctx, e.path, req)
	if err != nil {
		return out, err
	}
	defer func() { _ = body.Close() }()
	if err := json.NewDecoder(body).Decode(&out); err != nil {
		return out, fmt.Errorf("answer of sluiced to %s: %w", e.path, err)
	}
	return out, nil
}

// Follow asks a streaming endpoint and calls f for each answer, until the
// stream ends, f fails or ctx ends. An ended ctx is no error.
func Follow[Req, Resp any](ctx context.Context, c *Client, e Endpoint[Req, Resp], req Req, f func(Resp) error) error {
	body, err := c.ask(ctx, e.path, req)
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line streamLine[Resp]
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return fmt.Errorf("answer of sluiced to %s: %w", e.path, err)
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
		return fmt.Errorf("answer of sluiced to %s: %w", e.path, err)
	}
	return nil
}

func (c *Client) ask(ctx context.Context, path string, req any) (io.ReadCloser, error) {
	b, err := json.Marshal(req)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", path, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://sluiced"+path, bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", path, err)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.Body, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var f failure
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil || f.Error == "" {
		f.Error = "sluiced answered " + resp.Status
	}
	return nil, errorOf(resp.StatusCode, f.Error)
}

func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%w (nobody answers on %s)", ErrNotRunning, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s is open to root only: %w", c.socket, fs.ErrPermission)
	case os.IsTimeout(err): // of the transport, or of the caller's context
		return fmt.Errorf("%w on %s: %w", ErrSilent, c.socket, err)
	}
	return fmt.Errorf("asking sluiced: %w", err)
}
