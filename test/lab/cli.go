package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// NewCommand is the command sluice-lab.
func NewCommand() *cobra.Command {
	var opt Options
	root := &cobra.Command{
		Use:           "sluice-lab",
		Short:         "OVN clouds, BGP and VMs in network namespaces",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentFlags().StringVar(&opt.Name, "name", DefaultName, "name of the lab, the prefix of its namespaces")
	root.PersistentFlags().StringVar(&opt.Dir, "dir", DefaultDir, "parent of the run directory")
	root.AddCommand(upCommand(&opt), downCommand(&opt), execCommand(&opt), listCommand(&opt), outageCommand(&opt), novaCommand(), backendCommand(), askCommand())
	return root
}

// scenarios are the scenarios that the command knows by name.
var scenarios = map[string]func(EVPNParams) Scenario{
	"evpn": EVPN,
	"lb":   LB,
	"metadata": func(p EVPNParams) Scenario {
		s := Metadata(MetadataParams{Networks: p.ExtraTenants, KernelDatapath: p.KernelDatapath, DirectPlug: p.KernelDatapath})
		c := &s.Clouds[0]
		c.RemoteTCP, c.Central, c.Programs = p.RemoteTCP, p.CentralA, p.ProgramsA
		return s
	},
}

func upCommand(opt *Options) *cobra.Command {
	names := slices.Sorted(maps.Keys(scenarios))
	cmd := &cobra.Command{
		Use:       "up SCENARIO",
		Short:     "build a scenario: " + strings.Join(names, ", "),
		ValidArgs: names,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || scenarios[args[0]] == nil {
				return fmt.Errorf("up %s: want one scenario: %s", strings.Join(args, " "), strings.Join(names, ", "))
			}
			return nil
		},
	}
	var p EVPNParams
	var uplink string
	var sluiced bool
	f := cmd.Flags()
	f.BoolVar(&opt.KeepLogs, "keep-logs", false, "when it fails, leave the logs beside the run directory")
	f.Uint16Var(&p.VLAN, "vlan", 0, "VLAN tag of the provider networks")
	f.BoolVar(&p.TwoBridges, "two-bridges", false, "put tenant blue on a second provider bridge")
	f.StringVar(&uplink, "uplink", "", "what is on the provider bridges besides OVN: port or gateway (default nothing)")
	f.IntVar(&p.ExtraTenants, "tenants", 0, "more tenants: evpn has them in cloud a, metadata has a network with a VM in each")
	f.IntVar(&p.HostsPerTenant, "hosts", 0, "hosts of each of --tenants, logical ports only")
	f.BoolVar(&p.Compute, "compute", false, "add the chassis a3, which is no gateway, to cloud a: outage needs it")
	f.BoolVar(&p.RemoteTCP, "remote-tcp", false, "reach the databases by TCP over the underlay")
	var central Central
	f.IntVar(&central.Members, "members", 0, "run each database as a RAFT cluster of so many members")
	f.BoolVar(&central.Relay, "relay", false, "put a relay before the Southbound database")
	f.BoolVar(&central.TLS, "tls", false, "reach the databases over ssl, with a certificate for each node")
	f.BoolVar(&central.RBAC, "rbac", false, "give the chassis the role ovn-controller; needs --tls")
	f.StringVar(&central.Schemas, "schemas", "", "directory of other schemas than the installed OVN's")
	f.StringVar(&p.ProgramsA, "programs", "", "directory with another OVN and Open vSwitch, as tools/ovn.sh builds it")
	f.BoolVar(&sluiced, "sluiced", false, "run sluiced on every chassis, with load balancing; in the scenario lb also the backends, and sluice-controller on the node api")
	f.BoolVar(&p.KernelDatapath, "kernel-datapath", false, "use the kernel's datapath of Open vSwitch (modules openvswitch and geneve)")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p.ProgramsB = p.ProgramsA
		p.Uplink, p.CentralA, p.CentralB = Uplink(uplink), central, central
		opt.Log = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
		l, err := Up(cmd.Context(), scenarios[args[0]](p), *opt)
		if err != nil {
			return err
		}
		err = l.startNovas(cmd.Context())
		if err == nil && sluiced {
			err = l.startAll(cmd.Context())
		}
		if err != nil {
			return errors.Join(err, l.Down())
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "lab %s is up; logs in %s\n", l.Name(), l.LogDir())
		return err
	}
	return cmd
}

func downCommand(opt *Options) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "end the lab's processes, and remove its namespaces and files",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			l, err := Open(*opt)
			if errors.Is(err, ErrNoLab) {
				return nil
			}
			if err := errors.Join(err, lacksRoot()); err != nil {
				return err
			}
			return l.Down()
		},
	}
}

func execCommand(opt *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "exec NODE -- COMMAND [ARG...]",
		Short: "run a command in a node's namespace and environment",
		Long: "Run a command in a node's namespace and environment: ovn-nbctl, ovn-sbctl, ovs-vsctl,\n" +
			"vtysh and sluicectl find the node's own databases and sockets.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || args[1] == "--" && len(args) < 3 {
				return errors.New("exec: want a node and a command: exec NODE -- COMMAND [ARG...]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			l, err := Open(*opt)
			if err := errors.Join(err, lacksRoot()); err != nil {
				return err
			}
			// Becoming the command passes on the terminal, signals and the exit code.
			argv := args[1:]
			if argv[0] == "--" {
				argv = argv[1:]
			}
			return l.become(args[0], argv)
		},
	}
	cmd.Flags().SetInterspersed(false)
	return cmd
}

func (l *Lab) become(node string, argv []string) error {
	if n, err := l.Node(node); err == nil && n.OwnMounts {
		if p, err := l.Process(node, mountsProcess); err != nil || p.Pid() == 0 {
			return fmt.Errorf("node %s is dead, as after an outage; end the lab (`down`, `make demo-down`) and make it again", node)
		}
	}
	cmd, err := l.Command(context.Background(), node, argv...)
	if err != nil {
		return err
	}
	path, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	return unix.Exec(path, cmd.Args, cmd.Env)
}

// Listing is what `sluice-lab list -o json` prints for a node.
type Listing struct {
	Node
	Processes []ListedProcess `json:"processes"`
}

// ListedProcess is a process of a node; Pid is 0 when it has ended.
type ListedProcess struct {
	Name string `json:"name"`
	PID  int    `json:"pid"`
	Log  string `json:"log"`
}

// List is all nodes with their processes.
func (l *Lab) List() ([]Listing, error) {
	procs, err := l.Processes()
	if err != nil {
		return nil, err
	}
	var out []Listing
	for _, n := range l.Nodes() {
		item := Listing{Node: n, Processes: []ListedProcess{}}
		for _, p := range procs {
			if p.Node == n.Name {
				item.Processes = append(item.Processes, ListedProcess{Name: p.Name, PID: p.Pid(), Log: p.Log})
			}
		}
		out = append(out, item)
	}
	return out, nil
}

func listCommand(opt *Options) *cobra.Command {
	var format string
	cmd := &cobra.Command{Use: "list", Short: "list nodes and their processes", Args: cobra.NoArgs}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "table or json")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		l, err := Open(*opt)
		if err != nil {
			return err
		}
		items, err := l.List()
		if err != nil {
			return err
		}
		switch format {
		case "json":
			enc := json.NewEncoder(cmd.OutOrStdout())
			enc.SetIndent("", "  ")
			return enc.Encode(struct {
				Name     string    `json:"name"`
				Scenario string    `json:"scenario"`
				LogDir   string    `json:"logDir"`
				Nodes    []Listing `json:"nodes"`
			}{l.Name(), l.Scenario().Name, l.LogDir(), items})
		case "table":
			return printTable(cmd.OutOrStdout(), items)
		}
		return fmt.Errorf("output %q: want table or json", format)
	}
	return cmd
}

func printTable(w io.Writer, items []Listing) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tKIND\tCLOUD\tVTEP\tPROCESSES")
	for _, n := range items {
		var procs []string
		for _, p := range n.Processes {
			if p.PID == 0 {
				procs = append(procs, p.Name+" (ended)")
				continue
			}
			procs = append(procs, fmt.Sprintf("%s %d", p.Name, p.PID))
		}
		vtep := ""
		if n.VTEP4.IsValid() {
			vtep = n.VTEP4.String()
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\n", n.Name, n.Kind, n.Cloud, vtep, strings.Join(procs, ", "))
	}
	return tw.Flush()
}
