// Package graceful ends an HTTP server with its context: it lets requests finish
// for a moment, and no longer.
package graceful

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
)

// Moment is a usual bound for requests whose contexts end with that of the server.
const Moment = 3 * time.Second

// Serve calls listen, which serves with srv, and shuts srv down when ctx ends. It closes the
// connections of requests that do not finish within the bound.
func Serve(ctx context.Context, srv *http.Server, bound time.Duration, listen func() error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		if err := listen(); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound)
		defer cancel()
		if err := srv.Shutdown(stop); err != nil {
			return srv.Close()
		}
		return nil
	})
	return g.Wait()
}
