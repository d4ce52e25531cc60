package metadata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nova"
)

const (
	chassis = "m1"
	cloud   = "m"
)

// sluiceSide is a lab with sluiced and its proxy.
type sluiceSide struct {
	*bench
	networks int
	lab      *lab.Lab
	address  string // of Nova
}

// up brings the lab up, without Sluice.
func (s *sluiceSide) up(ctx context.Context, networks int) (err error) {
	s.networks = networks
	begin := time.Now()
	s.lab, err = lab.Up(ctx, lab.Metadata(lab.MetadataParams{OneChassis: true, NoTenants: true, Networks: networks}), lab.Options{Name: s.LabName})
	if err != nil {
		return err
	}
	s.say("lab with %d networks is up after %.1f s", networks, time.Since(begin).Seconds())
	if s.address, err = s.lab.NovaAddress(cloud); err != nil {
		return err
	}
	_, err = s.lab.StartNova(ctx, cloud, s.beside("sluice-lab"))
	return err
}

// beside is a program that was built with the daemon.
func (s *sluiceSide) beside(name string) string { return filepath.Join(filepath.Dir(s.Sluiced), name) }

func (s *sluiceSide) down() error {
	if s.lab == nil {
		return nil
	}
	return s.lab.Down()
}

func (s *sluiceSide) space(node string) (netns.Namespace, error) {
	n, err := s.lab.Node(node)
	return netns.Named(n.Netns), err
}

// program is the daemon's or the proxy's, with lines of the section metadata.
func (s *sluiceSide) program(lines ...string) (lab.Sluiced, error) {
	rr, err := s.lab.Node("rr")
	section, configErr := s.lab.MetadataConfig(cloud, lines...)
	return lab.Sluiced{Binary: s.Sluiced, Config: fmt.Sprintf(lab.Config, rr.VTEP4) + section}, errors.Join(err, configErr)
}

// memory starts the daemon without metadata, then with it and the proxy, and gives the
// difference.
func (s *sluiceSide) memory(ctx context.Context) (memory, error) {
	off, err := s.program("enabled: false")
	if err != nil {
		return memory{}, err
	}
	daemon, err := s.lab.StartSluiced(ctx, chassis, off)
	if err != nil {
		return memory{}, err
	}
	if err := sleep(ctx, s.Settle); err != nil {
		return memory{}, err
	}
	before, err := s.settled(ctx, []int{daemon.Pid()})
	if err != nil {
		return memory{}, err
	}
	if err := daemon.Stop(); err != nil {
		return memory{}, err
	}
	on, err := s.program()
	if err != nil {
		return memory{}, err
	}
	if daemon, err = s.lab.StartSluiced(ctx, chassis, on); err != nil {
		return memory{}, err
	}
	proxy, err := s.lab.StartMetadata(ctx, chassis, on)
	if err != nil {
		return memory{}, err
	}
	for _, c := range s.clients(s.networks) {
		if err := await(ctx, c); err != nil {
			return memory{}, fmt.Errorf("%w; the daemon's log ends: %s; the proxy's: %s", err, daemon.LogTail(5), proxy.LogTail(5))
		}
	}
	// As long as the daemon without metadata had.
	if err := sleep(ctx, s.Settle); err != nil {
		return memory{}, err
	}
	after, err := s.settled(ctx, []int{daemon.Pid(), proxy.Pid()})
	return after.minus(before), err
}

// clients are the first machines of the lab.
func (s *sluiceSide) clients(n int) (out []client) {
	for _, vm := range s.lab.Scenario().Clouds[0].VMs[:min(n, s.networks)] {
		if space, err := s.space(vm.Name); err == nil {
			out = append(out, client{space: space, to: "169.254.169.254:80", instance: vm.Instance})
		}
	}
	return out
}

// direct asks Nova as the proxy does, from where the proxy does.
func (s *sluiceSide) direct() (client, error) {
	vm := s.lab.Scenario().Clouds[0].VMs[0]
	space, err := s.space(chassis)
	return client{space: space, to: s.address, instance: vm.Instance, header: http.Header{
		"X-Instance-Id": {vm.Instance}, "X-Tenant-Id": {vm.Project}, "X-Instance-Id-Signature": {nova.Sign(lab.NovaSecret, vm.Instance)},
	}}, err
}

// restartGoal is how long the daemon may take to be where it was, in seconds.
const restartGoal = 1

// restarts times the daemon from its start until all tables of metadata are as they
// should be, and the proxy until a machine is answered.
func (s *sluiceSide) restarts(ctx context.Context) error {
	var daemon, proxy time.Duration
	for range s.Restarts {
		p, err := s.lab.Process(chassis, "sluiced")
		if err != nil {
			return err
		}
		if err := p.Stop(); err != nil {
			return err
		}
		begin := time.Now()
		if err := p.Start(); err != nil {
			return err
		}
		if err := s.lab.WaitFor(ctx, "the tables of metadata", func() error { return s.complete(ctx) }); err != nil {
			return err
		}
		daemon = max(daemon, time.Since(begin))
		if p, err = s.lab.Process(chassis, "metadata"); err != nil {
			return err
		}
		if err := p.Stop(); err != nil {
			return err
		}
		begin = time.Now()
		if err := p.Start(); err != nil {
			return err
		}
		if err := s.first(ctx, s.clients(1)[0]); err != nil {
			return err
		}
		proxy = max(proxy, time.Since(begin))
	}
	s.add(fmt.Sprintf("metadata restart of sluiced to steady state networks=%d", s.networks), daemon.Seconds(), "s", measure.AtMost(restartGoal), fmt.Sprintf("the longest of %d", s.Restarts))
	s.add(fmt.Sprintf("metadata restart of the proxy to the first answer networks=%d", s.networks), proxy.Seconds(), "s", nil, fmt.Sprintf("the longest of %d", s.Restarts))
	return nil
}

// complete asks the daemon whether each table of metadata has the rows that it should.
func (s *sluiceSide) complete(ctx context.Context) error {
	out, err := s.lab.Exec(ctx, chassis, "sh", "-c", s.beside("sluicectl")+" status -o json || test $? = 3") // 3: not ready
	if err != nil {
		return err
	}
	var st status.Status
	if err := json.Unmarshal([]byte(out), &st); err != nil {
		return err
	}
	rows := 0
	for _, t := range st.Tables {
		if !strings.Contains(strings.ToLower(t.Name), "metadata") {
			continue
		}
		if rows = max(rows, t.Actual); t.Wanted == nil || *t.Wanted != t.Actual || t.Held != "" {
			return fmt.Errorf("table %s has %d rows", t.Name, t.Actual)
		}
	}
	if rows < s.networks {
		return fmt.Errorf("%d rows", rows)
	}
	return nil
}

// first asks until there is an answer.
func (s *sluiceSide) first(ctx context.Context, c client) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c = c.hasty()
	for {
		_, err := c.ask(ctx, attempt)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("no answer for %s: %w", c.instance, err)
		}
		// A machine that is that slow would never be answered.
		c.connect += c.connect / 20
	}
}
