package metadata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/haproxy"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nova"
)

// agentConfig is what the process in the place of neutron's agent is told: the unix socket
// that it listens on, and the address of Nova.
type agentConfig struct{ Socket, Nova string }

// RunAgent is the process in the place of neutron's agent, until ctx ends: it signs
// requests of haproxy and passes them on to Nova.
func RunAgent(ctx context.Context, text string) error {
	var cfg agentConfig
	if err := json.Unmarshal([]byte(text), &cfg); err != nil {
		return err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", cfg.Socket)
	if err != nil {
		return err
	}
	return serve(ctx, l, signing(cfg.Nova))
}

func serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{ReadHeaderTimeout: attempt, Handler: h}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// signing makes haproxy's requests Nova's.
func signing(address string) http.Handler {
	return &httputil.ReverseProxy{Transport: &http.Transport{MaxIdleConnsPerHost: 1000}, Rewrite: func(r *httputil.ProxyRequest) {
		instance := r.In.Header.Get(haproxy.NetworkHeader) // of a network here there is one
		r.Out.URL.Scheme, r.Out.URL.Host = "http", address
		r.Out.Header.Set("X-Instance-Id", instance)
		r.Out.Header.Set("X-Tenant-Id", projectOf(instance))
		r.Out.Header.Set("X-Instance-Id-Signature", nova.Sign(lab.NovaSecret, instance))
	}}
}

func projectOf(instance string) string {
	return "project-t" + strings.TrimPrefix(instance, "inst-n")
}

// agentProcess starts this program anew as RunAgent, where Sluice's proxy asks Nova from.
func agentProcess(space netns.Namespace, address string) func(socket string) (stop func(), err error) {
	return func(socket string) (func(), error) {
		text, err := json.Marshal(agentConfig{socket, address})
		if err != nil {
			return nil, err
		}
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		cmd := exec.Command(self, "-agent", string(text))
		cmd.Stderr = os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := space.Do(cmd.Start); err != nil {
			return nil, fmt.Errorf("the agent of the classic form: %w", err)
		}
		return func() {
			_ = cmd.Process.Signal(syscall.SIGTERM)
			late := time.AfterFunc(attempt, func() { _ = cmd.Process.Kill() })
			_ = cmd.Wait()
			late.Stop()
		}, nil
	}
}
