package neutron

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	// madeHere is the description of ports that the controller makes: by it they are told from those of
	// ovn-octavia-provider.
	madeHere = "VIP of a load balancer of sluice-controller"
	// ownerVIP is the device_owner that ovn-octavia-provider gives ports of VIPs since 9.0.
	ownerVIP = "ovn-lb:vip"

	clientTimeout = 30 * time.Second
	largestAnswer = 16 << 20
	// mostPages bounds a list that never ends.
	mostPages = 1000
)

// ClientConfig is what a Client is told.
type ClientConfig struct {
	// URL is the service's, without a version: http://127.0.0.1:9696.
	URL string
	// TokenFile has the token to send; it is read for each call. Empty: none is sent.
	TokenFile string
	// CA is a PEM file of the authorities that sign the service's certificate. Empty: the system's.
	CA string
}

// Client makes and deletes ports of VIPs at Neutron's own API.
type Client struct {
	base, tokenFile string
	http            *http.Client
}

// NewClient makes a Client. It reads the CA and asks nobody.
func NewClient(c ClientConfig) (*Client, error) {
	transport := &http.Transport{TLSHandshakeTimeout: 10 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4}
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no certificate in PEM form", c.CA)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &Client{
		base: strings.TrimSuffix(c.URL, "/") + "/v2.0", tokenFile: c.TokenFile,
		// Redirects are refused: the token is sent to the configured address alone.
		http: &http.Client{Transport: transport, Timeout: clientTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// Close closes connections that are idle.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// VIPPort is a port to make: an address of a subnet for a load balancer.
type VIPPort struct {
	Name, Balancer, Project string
	Network, Subnet         string // IDs
	// Address is invalid for any.
	Address netip.Addr
}

// MadePort is a port that was made.
type MadePort struct {
	ID      string
	Address netip.Addr
}

// Refusal is an answer of Neutron that is no success.
type Refusal struct {
	Status int
	// Type and Text are those of a NeutronError; empty if the answer is none.
	Type, Text string
}

func (r *Refusal) Error() string {
	if r.Text == "" {
		return fmt.Sprintf("Neutron answers %d", r.Status)
	}
	return fmt.Sprintf("Neutron answers %d %s: %s", r.Status, r.Type, r.Text)
}

// CreateVIPPort makes a port. The error is a *Refusal if Neutron refused; another one leaves open whether it
// was made.
func (c *Client) CreateVIPPort(ctx context.Context, p VIPPort) (MadePort, error) {
	fixed := map[string]string{"subnet_id": p.Subnet}
	if p.Address.IsValid() {
		fixed["ip_address"] = p.Address.String()
	}
	body := map[string]any{"port": map[string]any{
		"name": p.Name, "network_id": p.Network, "project_id": p.Project, "admin_state_up": true, "fixed_ips": []any{fixed},
		"device_id": "lb-" + p.Balancer, "device_owner": ownerVIP, "description": madeHere,
	}}
	var answer struct{ Port Port }
	if err := c.call(ctx, http.MethodPost, "/ports", body, &answer); err != nil {
		return MadePort{}, fmt.Errorf("create port %s at Neutron: %w", p.Name, err)
	}
	made := MadePort{ID: answer.Port.ID}
	for _, f := range answer.Port.FixedIPs {
		if a, err := netip.ParseAddr(f.Address); err == nil && f.Subnet == p.Subnet {
			made.Address = a
		}
	}
	if made.ID == "" || !made.Address.IsValid() {
		return made, fmt.Errorf("create port %s at Neutron: the answer has no address of the subnet: %+v", p.Name, answer.Port)
	}
	return made, nil
}

// DeletePort deletes a port. One that is not there is no error.
func (c *Client) DeletePort(ctx context.Context, id string) error {
	err := c.call(ctx, http.MethodDelete, "/ports/"+url.PathEscape(id), nil, nil)
	if r, is := errors.AsType[*Refusal](err); is && r.Status == http.StatusNotFound {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete port %s at Neutron: %w", id, err)
	}
	return nil
}

// VIPPorts are the IDs of all ports that CreateVIPPort has made.
func (c *Client) VIPPorts(ctx context.Context) (ids []string, err error) {
	query := url.Values{"device_owner": {ownerVIP}, "description": {madeHere}}
	for range mostPages {
		var page struct {
			Ports []struct {
				ID          string `json:"id"`
				Owner       string `json:"device_owner"`
				Description string `json:"description"`
			} `json:"ports"`
			Links []struct{ Rel string } `json:"ports_links"`
		}
		if err := c.call(ctx, http.MethodGet, "/ports?"+query.Encode(), nil, &page); err != nil {
			return nil, fmt.Errorf("list ports of VIPs at Neutron: %w", err)
		}
		more := false
		for _, link := range page.Links {
			more = more || link.Rel == "next"
		}
		for _, p := range page.Ports {
			// Neutron ignores what it cannot filter by.
			if p.Owner == ownerVIP && p.Description == madeHere {
				ids = append(ids, p.ID)
			}
			query.Set("marker", p.ID)
		}
		if !more || len(page.Ports) == 0 {
			return ids, nil
		}
	}
	return nil, fmt.Errorf("list ports of VIPs at Neutron: more than %d pages", mostPages)
}

// call asks. An answer is decoded unless it is nil.
func (c *Client) call(ctx context.Context, method, path string, body, answer any) error {
	var sent io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.tokenFile != "" {
		token, err := os.ReadFile(c.tokenFile)
		if err != nil {
			return err
		}
		r.Header.Set("X-Auth-Token", strings.TrimSpace(string(token)))
	}
	response, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, largestAnswer))
	if err != nil {
		return err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		return refusal(response.StatusCode, raw)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}

func refusal(status int, raw []byte) *Refusal {
	var body struct {
		NeutronError struct{ Type, Message string }
	}
	if json.Unmarshal(raw, &body) != nil {
		return &Refusal{Status: status} // a proxy's, or no JSON
	}
	return &Refusal{Status: status, Type: body.NeutronError.Type, Text: body.NeutronError.Message}
}
