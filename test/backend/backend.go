// Package backend is a server that says who it is, for tests of load balancers: by HTTP,
// by UDP and by SCTP.
package backend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Ports that the server listens on.
const (
	HTTPPort = 8080
	UDPPort  = 7001
)

// maxBody bounds what POST /back takes.
const maxBody = 64 << 20

// Run answers until ctx ends: GET /, each datagram and each SCTP association with the name and who
// asked, as "NAME ADDRESS:PORT" and a newline. The answer to a longer datagram is as long, with the
// rest of what was asked. GET /stream sends the name again and again, a line each 100 ms, or as
// often as "every" says. POST /back sends the body back.
func Run(ctx context.Context, name string) error {
	udp, err := net.ListenPacket("udp", fmt.Sprintf(":%d", UDPPort))
	if err != nil {
		return fmt.Errorf("backend %s: %w", name, err)
	}
	var raw [2]*net.IPConn
	for i, network := range []string{"ip4", "ip6"} {
		if raw[i], err = net.ListenIP(fmt.Sprintf("%s:%d", network, sctpProtocol), nil); err != nil {
			return fmt.Errorf("backend %s: %w", name, err)
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s %s\n", name, r.RemoteAddr) })
	mux.HandleFunc("GET /stream", func(w http.ResponseWriter, r *http.Request) {
		every := 100 * time.Millisecond
		if d, err := time.ParseDuration(r.FormValue("every")); err == nil && d > 0 {
			every = d
		}
		stream(r.Context(), w, name, every)
	})
	mux.HandleFunc("POST /back", func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = w.Write(b) // whoever asked compares
	})
	web := &http.Server{Addr: fmt.Sprintf(":%d", HTTPPort), Handler: mux, ReadHeaderTimeout: time.Minute}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(web.ListenAndServe)
	group.Go(func() error { return echo(udp, name) })
	for _, conn := range raw {
		group.Go(func() error { return serveSCTP(conn, name) })
	}
	group.Go(func() error {
		<-ctx.Done()
		return errors.Join(web.Close(), udp.Close(), raw[0].Close(), raw[1].Close())
	})
	if err := group.Wait(); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("backend %s: %w", name, err)
	}
	return nil
}

func stream(ctx context.Context, w http.ResponseWriter, name string, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := fmt.Fprintln(w, name); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func echo(conn net.PacketConn, name string) error {
	b := make([]byte, 65536)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return err
		}
		answer := fmt.Appendf(nil, "%s %s\n", name, from)
		if n > len(answer) {
			answer = append(answer, b[len(answer):n]...)
		}
		if _, err := conn.WriteTo(answer, from); err != nil {
			return err
		}
	}
}
