package nova

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// Port is nova_metadata_port.
const Port = 8775

// Serve answers on a listener until ctx ends.
func (n *Nova) Serve(ctx context.Context, l net.Listener) error {
	s := &http.Server{Handler: n, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("the stand-in for Nova: %w", err)
	}
	return nil
}

// Run serves what a JSON file says on ADDRESS:PORT until ctx ends.
func Run(ctx context.Context, file, address string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var cfg Config
	if err := json.Unmarshal(b, &cfg); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return New(cfg).Serve(ctx, l)
}
