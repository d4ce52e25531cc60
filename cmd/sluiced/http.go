package main

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/serve"
)

// runHTTP serves metrics and health until ctx ends.
func runHTTP(ctx context.Context, c config.HTTP, h serve.Health, log *slog.Logger) error {
	s := serve.New(serve.Config{Listen: c.Listen, WebConfig: c.WebConfig}, log)
	h.PProf = c.PProf
	s.MountHealth(h)
	if err := s.Run(ctx); err != nil {
		return fmt.Errorf("http.%w", err)
	}
	return nil
}
