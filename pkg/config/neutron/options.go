package neutron

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/config"
)

// The sections of the files.
const (
	ovnGroup   = "ovn"
	ovsGroup   = "ovs"
	limitGroup = "metadata_rate_limiting"
)

func (c *converter) nova(secretFile string) nova {
	n := nova{Hosts: []string{"127.0.0.1"}, SecretFile: secretFile}
	host, given := c.text(defaults, "nova_metadata_host")
	if given {
		c.leave(defaults, "nova_metadata_ip", "nova_metadata_host takes precedence")
	} else {
		host, given = c.text(defaults, "nova_metadata_ip") // what it was called before
	}
	if given {
		n.Hosts = []string{strings.Trim(host, "[]")}
	} else {
		c.changed = append(c.changed, "[DEFAULT] nova_metadata_host is not in these files: it is 127.0.0.1, as with Neutron")
	}
	n.Port = uint16(c.number(defaults, "nova_metadata_port", 65535))
	n.Protocol, _ = c.text(defaults, "nova_metadata_protocol")
	if n.Protocol = strings.ToLower(n.Protocol); n.Protocol != string(config.ProtocolHTTPS) {
		for _, key := range []string{"nova_metadata_insecure", "auth_ca_cert", "nova_client_cert", "nova_client_priv_key"} {
			if key != "nova_metadata_insecure" || c.flag(defaults, key) {
				c.leave(defaults, key, "nova_metadata_protocol is http, which has no TLS")
			}
		}
		return n
	}
	n.Insecure = c.flag(defaults, "nova_metadata_insecure")
	if n.Insecure {
		c.leave(defaults, "auth_ca_cert", "nova_metadata_insecure is true, so nothing is checked with it")
	} else {
		n.CACert, _ = c.text(defaults, "auth_ca_cert")
	}
	cert, hasCert := c.text(defaults, "nova_client_cert")
	key, hasKey := c.text(defaults, "nova_client_priv_key")
	if hasCert && hasKey {
		n.ClientCert, n.ClientKey = cert, key
	} else {
		c.leave(defaults, "nova_client_cert", "nova_client_priv_key is not given, and Neutron uses both or none")
		c.leave(defaults, "nova_client_priv_key", "nova_client_cert is not given, and Neutron uses both or none")
	}
	return n
}

// secret is the shared one, if a file can have it as its first line.
func (c *converter) secret() (string, bool) {
	v, given := c.text(defaults, "metadata_proxy_shared_secret")
	if given && (strings.TrimSpace(v) != v || strings.ContainsAny(v, "\r\n")) {
		c.fail(defaults, "metadata_proxy_shared_secret", "has several lines, or spaces at its ends, which a file with a secret cannot have; give Nova and Neutron another one first")
		return "", false
	}
	return v, given
}

func (c *converter) ovn() ovnSection {
	var out ovnSection
	out.SB = c.endpoints(ovnGroup, "ovn_sb_connection")
	out.NB = c.endpoints(ovnGroup, "ovn_nb_connection")
	out.VSwitch = c.endpoints(ovsGroup, "ovsdb_connection")
	out.TLS = c.tls(out)
	if ms, given := c.text(ovnGroup, "ovsdb_probe_interval"); given {
		n, err := strconv.ParseUint(ms, 10, 31)
		if err != nil {
			c.fail(ovnGroup, "ovsdb_probe_interval", "is no number of milliseconds")
		}
		out.InactivityProbe = (time.Duration(n) * time.Millisecond).String()
	}
	return out
}

// endpoints are a list, on one line or more (oslo_config.types.List).
func (c *converter) endpoints(section, key string) string {
	v, _ := c.text(section, key)
	var out []string
	for e := range strings.FieldsFuncSeq(v, func(r rune) bool { return r == ',' || r == '\n' }) {
		if e = unquoted(strings.TrimSpace(e)); e != "" {
			out = append(out, e)
		}
	}
	return strings.Join(out, ",")
}

// tls is one certificate for both databases; Neutron may have two.
func (c *converter) tls(o ovnSection) *tlsSection {
	var found [2]*tlsSection
	for i, db := range []struct{ prefix, endpoints string }{{"ovn_sb", o.SB}, {"ovn_nb", o.NB}} {
		keys := []string{db.prefix + "_private_key", db.prefix + "_certificate", db.prefix + "_ca_cert"}
		var values []string
		for _, k := range keys {
			if v, given := c.text(ovnGroup, k); given {
				values = append(values, v)
			}
		}
		why := ""
		switch {
		case len(values) == 0:
			continue
		case !strings.Contains(db.endpoints, "ssl:"):
			why = db.prefix + "_connection has no ssl: endpoint"
		case len(values) < len(keys):
			why = strings.Join(keys, ", ") + " are not all given"
		default:
			found[i] = &tlsSection{values[0], values[1], values[2]}
			continue
		}
		for _, k := range keys {
			c.leave(ovnGroup, k, why)
		}
	}
	if found[0] != nil && found[1] != nil && *found[0] != *found[1] {
		c.change(ovnGroup, "ovn_nb_certificate", "Sluice has one certificate for both databases; it is that of ovn_sb_certificate")
	}
	if found[0] == nil {
		return found[1]
	}
	return found[0]
}

// boot is how many requests one makes, about.
const boot = 30

// limits translates two windows into a token bucket.
func (c *converter) limits() *limits {
	on := c.flag(limitGroup, "rate_limit_enabled")
	window := func(kind string) (seconds, requests uint64) {
		return c.numberOr(limitGroup, kind+"_window_duration", 1<<31, 10), c.numberOr(limitGroup, kind+"_query_rate_limit", 1<<31, 10)
	}
	baseTime, base := window("base")
	_, burst := window("burst")
	versions, given := c.text(limitGroup, "ip_versions")
	if !on {
		return nil
	}
	if baseTime == 0 || base == 0 || burst == 0 {
		c.fail(limitGroup, "base_window_duration", "and the other durations and limits cannot be 0 with rate_limit_enabled")
		return nil
	}
	l := &limits{Rate: uint32(min((base+baseTime-1)/baseTime, 100_000)), Burst: uint32(min(base, burst, 100_000))}
	c.change(limitGroup, "rate_limit_enabled", "%d requests in %d seconds are a rate of %d a second here, and a burst of %d: one bucket for each port, in place of windows for each address", base, baseTime, l.Rate, l.Burst)
	if given {
		c.change(limitGroup, "ip_versions", "%s: the limit is that of both versions together", versions)
	}
	if l.Burst < boot {
		c.change(limitGroup, "burst_query_rate_limit", "a burst of %d may be too little: a boot makes about %d requests", l.Burst, boot)
	}
	return l
}

// number is 0 where it is not given.
func (c *converter) number(section, key string, most uint64) uint64 {
	return c.numberOr(section, key, most, 0)
}

func (c *converter) numberOr(section, key string, most, otherwise uint64) uint64 {
	v, given := c.text(section, key)
	if !given {
		return otherwise
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil || n > most {
		c.fail(section, key, "is no number from 0 to %d", most)
	}
	return n
}

// reasons are why an option is not taken over.
var reasons = map[name]string{
	{defaults, "metadata_workers"}:           "one process serves all VMs",
	{defaults, "metadata_backlog"}:           "the kernel's net.core.somaxconn is what is used",
	{defaults, "metadata_proxy_socket"}:      "the proxy listens in namespaces itself; there is no socket between",
	{defaults, "metadata_proxy_socket_mode"}: "the proxy listens in namespaces itself; there is no socket between",
	{defaults, "metadata_proxy_user"}:        "the unit says as whom the proxy runs",
	{defaults, "metadata_proxy_group"}:       "the unit says as whom the proxy runs",
	{defaults, "state_path"}:                 "Sluice's own is stateDir",
	{defaults, "use_syslog"}:                 "the log goes to standard error",
	{defaults, "use_journal"}:                "the log goes to standard error",
	{defaults, "use_stderr"}:                 "the log goes to standard error",
	{defaults, "log_file"}:                   "the log goes to standard error",
	{defaults, "log_dir"}:                    "the log goes to standard error",
	{defaults, "transport_url"}:              "Sluice speaks to no message queue",
	{ovnGroup, "ovsdb_connection_timeout"}:   "sessions are tried again without end",
	{ovnGroup, "ovsdb_retry_max_interval"}:   "sessions are tried again without end",
	{ovsGroup, "ovsdb_connection_timeout"}:   "sessions are tried again without end",
	{ovsGroup, "integration_bridge"}:         "it is in the local Open vSwitch database",
	{ovsGroup, "bridge_mappings"}:            "they are in the local Open vSwitch database",
	{"agent", "extensions"}:                  "Sluice takes the place of the extension metadata; remove it from the list, if the agent keeps others",
}

// sections are reasons for all options of one.
var sections = map[string]string{
	ovnGroup:             "it is neutron-server's",
	"agent":              "it is of Neutron's agents",
	"database":           "it is neutron-server's",
	"keystone_authtoken": "it is neutron-server's",
	"nova":               "it is neutron-server's: Sluice asks Nova's metadata API alone",
	"ml2":                "it is neutron-server's",
	"securitygroup":      "see metadata.securityGroups",
	"oslo_concurrency":   "it is of Python's libraries",
}

// others are the options that nobody has asked for. Their values are not told.
func (c *converter) others() {
	for _, n := range c.o.names() {
		if c.used[n] {
			continue
		}
		why := reasons[n]
		if why == "" {
			why = sections[n.section]
		}
		if why == "" && strings.HasPrefix(n.section, "oslo_") {
			why = "it is of Python's libraries"
		}
		if why == "" {
			why = "Sluice has no counterpart"
		}
		c.left = append(c.left, fmt.Sprintf("%s: %s", n, why))
	}
}
