// Package haproxy has the configuration that neutron-ovn-metadata-agent writes for the
// haproxy of a network (neutron/agent/ovn/metadata/driver.py).
package haproxy

import "fmt"

const config = `global
    log         /dev/log local0 info
    log-tag     haproxy-metadata-proxy-%[1]s
    user        root
    group       root
    maxconn     1024

defaults
    log global
    mode http
    option httplog
    option dontlognull
    option http-server-close
    option forwardfor
    retries                 3
    timeout http-request    30s
    timeout connect         30s
    timeout client          32s
    timeout server          32s
    timeout http-keep-alive 30s

listen listener
    bind 169.254.169.254:80
%[3]s    server metadata %[2]s
    http-request add-header %[4]s %[1]s
`

// NetworkHeader is by which haproxy tells the agent whose network asks.
const NetworkHeader = "X-OVN-Network-ID"

// Config is that of a network, whose requests go to the agent's unix socket. device has the
// IPv6 metadata address; without one there is IPv4 alone.
func Config(network, socket, device string) []byte {
	six := ""
	if device != "" {
		six = "    bind fe80::a9fe:a9fe:80 interface " + device + "\n"
	}
	return fmt.Appendf(nil, config, network, socket, six, NetworkHeader)
}
