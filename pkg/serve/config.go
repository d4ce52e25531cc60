package serve

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
)

// Config is where and how a Server listens.
type Config struct {
	// Listen is ADDRESS:PORT. Empty: there is no listener.
	Listen string
	// WebConfig is a file in the form of the Prometheus exporter-toolkit: TLS and basic
	// authentication. It excludes Certificate.
	WebConfig string
	// Certificate and Key are PEM files. Empty: no TLS.
	Certificate, Key string
	// ClientCA is a PEM file; a client has to show a certificate that an authority in it has
	// signed. Empty: clients need none.
	ClientCA string

	// ReadTimeout bounds the time to read a request with its body, WriteTimeout that from the end
	// of its header to the end of the answer. A handler of a stream sets a deadline of its own by
	// http.ResponseController.
	ReadTimeout, WriteTimeout time.Duration
	// IdleTimeout bounds the time between two requests of a connection.
	IdleTimeout time.Duration
	// LargestHeader is in bytes; net/http lets 4 KiB more pass. 0: 1 MiB.
	LargestHeader int
	// LargestBody is in bytes; a larger one is answered with 413. A body whose length is not
	// declared is read into memory before the handler runs.
	LargestBody int64
	// MostRequests is the number of requests at once; another one is answered with 503 and
	// Retry-After.
	MostRequests int
	// Grace is how long requests may go on when the server's context has ended; then their
	// contexts end, and their connections are closed. 0: their contexts end at once.
	Grace time.Duration
}

// check finds what is wrong before anything listens.
func (c Config) check(t *tlsFiles) error {
	switch {
	case c.WebConfig != "" && c.Certificate != "":
		return errors.New("webConfig and certificate exclude each other")
	case (c.Certificate == "") != (c.Key == ""):
		return errors.New("certificate and key need each other")
	case c.ClientCA != "" && c.Certificate == "":
		return errors.New("clientCA needs certificate and key")
	}
	if err := web.Validate(c.WebConfig); err != nil {
		return fmt.Errorf("webConfig %s: %w", c.WebConfig, err)
	}
	if c.Certificate == "" {
		return nil
	}
	return t.start()
}
