package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func metadataCommand(o *options) *cobra.Command {
	socket := config.Default().Metadata.Socket
	if env := os.Getenv("SLUICE_METADATA_SOCKET"); env != "" {
		socket = env
	}
	c := &cobra.Command{Use: "metadata", Short: "Metadata requests of this node's VMs (169.254.169.254)"}
	p := &metadataProxy{}
	c.PersistentFlags().StringVar(&p.socket, "metadata-socket", socket, "socket of sluiced metadata (also SLUICE_METADATA_SOCKET)")
	c.AddCommand(metadataPortsCommand(o), metadataExplainCommand(o), p.proxyCommand(o), p.requestsCommand(o))
	return c
}

// metadataProxy asks a running sluiced metadata.
type metadataProxy struct{ socket string }

// errProxyAway: only the proxy knows what it is asked. The exit code is that of errOffline.
var errProxyAway = errors.New("sluiced metadata does not answer")

func askProxy[T any](ctx context.Context, p *metadataProxy, e admin.Endpoint[admin.Nothing, T]) (T, error) {
	client := admin.NewClient(nodeapi.Program, p.socket)
	defer client.Close()
	answer, err := admin.Call(ctx, client, e, admin.Nothing{})
	if errors.Is(err, admin.ErrNotRunning) {
		err = fmt.Errorf("%w on %s", errProxyAway, p.socket)
	}
	return answer, err
}

func (p *metadataProxy) proxyCommand(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "proxy", Short: "State of sluiced metadata: its listeners, and the outcomes of requests", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := askProxy(c.Context(), p, nodeapi.GetMetadataProxy)
			if err != nil {
				return err
			}
			if err := o.print(c.OutOrStdout(), answer, func(w io.Writer) error { return writeProxy(w, answer) }); err != nil {
				return err
			}
			if !answer.Ready {
				return errAnswerNo
			}
			return nil
		},
	}
}

func (p *metadataProxy) requestsCommand(o *options) *cobra.Command {
	var port string
	var failed bool
	c := &cobra.Command{
		Use: "requests", Short: "The latest requests: who asked, and the outcome", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := askProxy(c.Context(), p, nodeapi.ListMetadataRequests)
			if err != nil {
				return err
			}
			if port != "" {
				if all, err = requestsOf(c.Context(), c.ErrOrStderr(), newDaemon(o), all, port); err != nil {
					return err
				}
			}
			shown := []status.MetadataRequest{}
			for _, r := range all {
				if !failed || r.Outcome != "answered" || r.Status >= 400 {
					shown = append(shown, r)
				}
			}
			return o.print(c.OutOrStdout(), shown, func(w io.Writer) error { return writeRequests(w, shown) })
		},
	}
	c.Flags().StringVar(&port, "port", "", "only those of this port: its name, its instance, or an address or tap that one VM alone has")
	c.Flags().BoolVar(&failed, "failed", false, "only those that were not answered, or with a status of 400 and more")
	return c
}

// requestsOf picks the requests of a port, by what sluiced knows of it; one that has gone
// is known by its requests alone.
func requestsOf(ctx context.Context, notes io.Writer, d *daemon, all []status.MetadataRequest, name string) ([]status.MetadataRequest, error) {
	named := func(r status.MetadataRequest) bool {
		return r.Port == name || r.Instance == name || r.Address.IsValid() && r.Address.String() == name
	}
	ports, err := admin.Call(ctx, d.client, nodeapi.GetMetadata, admin.Nothing{})
	var port *status.MetadataPort
	switch {
	case err != nil:
		output.Printf(notes, "the ports of this node cannot be listed: %v\n", err)
	default:
		if port, err = ports.Find(name); err != nil {
			return nil, err
		}
	}
	var out []status.MetadataRequest
	for _, r := range all {
		if named(r) && (port == nil || port.Port == name || port.Instance == name) || port != nil && r.Port == port.Port {
			out = append(out, r)
		}
	}
	if len(out) == 0 && port == nil && err == nil {
		return nil, fmt.Errorf("no VM of this node has the port, instance, tap or address %s, and no recent request comes from it", name)
	}
	return out, nil
}

func writeProxy(w io.Writer, p status.MetadataProxy) error {
	output.Printf(w, "backend %s, %d ports, %d networks, %d connections", p.Backend, p.Ports, p.Networks, p.Connections)
	if !p.Heartbeat.IsZero() {
		output.Printf(w, ", last heartbeat %s ago", time.Since(p.Heartbeat).Round(10*time.Millisecond))
	}
	fmt.Fprint(w, "\n\n")
	t := output.Table{Header: []string{"COMPONENT", "READY", "REASON", "SINCE", "DETAIL"}}
	for _, c := range p.Conditions {
		t.Add(c.Name, yes(c.Ready), c.Reason, age(c.Since), c.Detail)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if len(p.Listeners) > 0 {
		fmt.Fprintln(w)
		t = output.Table{Header: []string{"NETWORK", "NAMESPACE", "ADDRESS", "SERVING", "SINCE", "NOTE"}}
		for _, l := range p.Listeners {
			t.Add(l.Network, l.Namespace, l.Address, yes(l.Serving), age(l.Since), l.Error)
		}
		if err := t.Write(w); err != nil {
			return err
		}
	}
	fmt.Fprintln(w)
	t = output.Table{Header: []string{"OUTCOME", "REQUESTS", "MEANING"}}
	for _, o := range p.Outcomes {
		if o.Requests > 0 || o.Outcome == "answered" {
			t.Add(o.Outcome, fmt.Sprint(o.Requests), o.Description)
		}
	}
	return t.Write(w)
}

func writeRequests(w io.Writer, requests []status.MetadataRequest) error {
	if len(requests) == 0 {
		_, err := fmt.Fprintln(w, "no requests")
		return err
	}
	t := output.Table{Header: []string{"TIME", "PORT", "INSTANCE", "NETWORK", "ADDRESS", "METHOD", "PATH", "STATUS", "OUTCOME", "TOOK"}}
	for _, r := range requests {
		address, code := "", ""
		if r.Address.IsValid() {
			address = r.Address.String()
		}
		if r.Status != 0 {
			code = fmt.Sprint(r.Status)
		}
		t.Add(r.Time.Format("15:04:05.000"), r.Port, r.Instance, r.Network, address, r.Method, r.Path, code, r.Outcome, r.Took.Round(10*time.Microsecond).String())
	}
	return t.Write(w)
}
