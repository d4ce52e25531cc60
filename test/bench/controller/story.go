package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// members are those of a load balancer's pool.
const members = 10

// call asks the controller, and decodes its answer.
func (c *cloud) call(ctx context.Context, method, path, body string, answer any) error {
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.controller.Address+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := c.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s: %s: %s", method, path, response.Status, raw)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}

// caller makes calls one after the other, in a network.
type caller struct {
	*cloud
	network network
	took    []time.Duration
}

// create makes an object and returns its ID.
func (c *caller) create(ctx context.Context, path, kind, format string, args ...any) (string, error) {
	var answer map[string]struct{ ID string }
	begun := time.Now()
	err := c.call(ctx, http.MethodPost, "/v2.0/lbaas"+path, fmt.Sprintf(`{"`+kind+`": {`+format+`}}`, args...), &answer)
	c.took = append(c.took, time.Since(begun))
	return answer[kind].ID, err
}

// balancer makes a load balancer with all its children, and returns its ID.
func (c *caller) balancer(ctx context.Context) (string, error) {
	id, err := c.create(ctx, "/loadbalancers", "loadbalancer", `"name": "bench", "vip_subnet_id": %q`, c.network.subnet)
	if err != nil {
		return id, err
	}
	pool, err := c.create(ctx, "/pools", "pool", `"name": "web", "loadbalancer_id": %q, "protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"`, id)
	if err != nil {
		return id, err
	}
	if _, err := c.create(ctx, "/listeners", "listener", `"name": "http", "loadbalancer_id": %q, "protocol": "TCP", "protocol_port": 80, "default_pool_id": %q`, id, pool); err != nil {
		return id, err
	}
	for m := range members {
		if _, err := c.create(ctx, "/pools/"+pool+"/members", "member", `"name": "web-%d", "address": %q, "protocol_port": 8080, "subnet_id": %q`,
			m, c.network.member(m), c.network.subnet); err != nil {
			return id, err
		}
	}
	return id, nil
}

// story makes a load balancer and deletes it.
func (c *caller) story(ctx context.Context) error {
	id, err := c.balancer(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	err = c.call(ctx, http.MethodDelete, "/v2.0/lbaas/loadbalancers/"+id+"?cascade=true", "", nil)
	c.took = append(c.took, time.Since(begun))
	return err
}

// at has a caller in each network do something at once, so often. It returns how long each of their calls
// took, and all of it.
func (c *cloud) at(ctx context.Context, networks []network, times int, do func(*caller, context.Context) error) (calls []time.Duration, all time.Duration, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for _, n := range networks {
		group.Go(func() error {
			one := &caller{cloud: c, network: n}
			for range times {
				if err := do(one, ctx); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			calls = append(calls, one.took...)
			return nil
		})
	}
	err = group.Wait()
	return calls, time.Since(begun), err
}
