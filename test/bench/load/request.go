package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Request is a GET on a connection of its own.
type Request struct {
	// Dial opens the connection.
	Dial   func(context.Context) (net.Conn, error)
	URL    string
	Header http.Header
}

// Get makes the request, and gives the answer and how long it took. What is no 200 is an error.
func (r Request) Get(ctx context.Context) (body string, took time.Duration, err error) {
	begin := time.Now()
	conn, err := r.Dial(ctx)
	if err != nil {
		return "", 0, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", 0, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return "", 0, err
	}
	req.Close = true
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if err := req.Write(conn); err != nil {
		return "", 0, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), req)
	if err != nil {
		return "", 0, err
	}
	b, err := io.ReadAll(resp.Body)
	took = time.Since(begin)
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return "", took, err
	}
	if resp.StatusCode != http.StatusOK {
		return "", took, fmt.Errorf("status %d, %.100q", resp.StatusCode, b)
	}
	return string(b), took, nil
}
