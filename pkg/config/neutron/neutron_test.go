package neutron

import (
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/logging"
)

// agent is neutron_ovn_metadata_agent.ini as kolla and others write it, shortened.
const agent = `# A comment
; another one
[DEFAULT]
debug = False
state_path = /var/lib/neutron
metadata_proxy_shared_secret = correct horse
metadata_workers = 4
nova_metadata_host = 192.0.2.10
nova_metadata_port: 8775
nova-metadata-protocol = https
auth_ca_cert = ${cert_dir}/ca.pem
cert_dir=/etc/ssl
nova_client_cert = $cert_dir/$$node.pem
nova_client_priv_key = "/etc/ssl/node.key"
transport_url = rabbit://openstack:hunter2@192.0.2.1

[ovs]
ovsdb_connection = tcp:127.0.0.1:6640
ovsdb_connection_timeout = 10
[ovn]
ovn_sb_connection = ssl:192.0.2.11:6642,
  ssl:192.0.2.12:6642,
	ssl:[2001:db8::13]:6642
ovn_nb_connection = ssl:192.0.2.11:6641
ovn_sb_private_key = /k
ovn_sb_certificate = /c
ovn_sb_ca_cert = /a
ovsdb_probe_interval = 60000
ovn_metadata_enabled = true
[agent]
root_helper = sudo neutron-rootwrap /etc/neutron/rootwrap.conf
`

func convert(t *testing.T, texts ...string) (Result, *config.Config) {
	t.Helper()
	var o Options
	for i, text := range texts {
		if err := o.Read(string(rune('a'+i))+".ini", text); err != nil {
			t.Fatal(err)
		}
	}
	r, err := o.Convert("/etc/sluice/metadata-secret")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("out", r.YAML)
	if err != nil {
		t.Fatalf("%v\n%s", err, r.YAML)
	}
	return r, c
}

func TestConvert(t *testing.T) {
	r, c := convert(t, agent)
	n := c.Metadata.Nova
	if c.Metadata.Backend != config.BackendNova || !c.Metadata.Used() || n.Hosts[0] != "192.0.2.10" || n.Port != 8775 || n.Protocol != config.ProtocolHTTPS || n.Insecure ||
		n.CACert != "/etc/ssl/ca.pem" || n.ClientCert != "/etc/ssl/$node.pem" || n.ClientKey != "/etc/ssl/node.key" || n.SecretFile != "/etc/sluice/metadata-secret" {
		t.Errorf("%+v", n)
	}
	if o := c.OVN; o.SB != "ssl:192.0.2.11:6642,ssl:192.0.2.12:6642,ssl:[2001:db8::13]:6642" || o.NB != "ssl:192.0.2.11:6641" || o.VSwitch != "tcp:127.0.0.1:6640" ||
		o.TLS != (config.TLS{PrivateKey: "/k", Certificate: "/c", CACert: "/a"}) || o.InactivityProbe.String() != "1m0s" {
		t.Errorf("%+v", o)
	}
	if r.Secret != "correct horse" || !r.HasSecret || c.Log.Level != logging.LevelInfo || c.Metadata.Limits.Rate != 0 {
		t.Errorf("%+v", r)
	}
	text := string(r.YAML)
	for _, secret := range []string{"horse", "hunter2", "rootwrap.conf"} {
		if strings.Contains(text, secret) {
			t.Errorf("%s is told:\n%s", secret, text)
		}
	}
	for _, line := range []string{
		"#   [DEFAULT] metadata_workers: one process serves all VMs\n", "#   [DEFAULT] transport_url: Sluice speaks to no message queue\n",
		"#   [DEFAULT] cert_dir: Sluice has no counterpart\n", "#   [agent] root_helper: it is of Neutron's agents\n", "#   [ovn] ovn_metadata_enabled: it is neutron-server's\n", "#   a.ini\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// Files are read one after the other, and the last counts; without anything there are
// Neutron's own defaults.
func TestFilesAndDefaults(t *testing.T) {
	_, c := convert(t, agent, "[default]\nnova_metadata_host = [2001:db8::1]\nnova_metadata_protocol = http\nnova_metadata_insecure = yes\n[ovn]\novn_sb_connection = tcp:192.0.2.9:6642\n")
	if n := c.Metadata.Nova; n.Hosts[0] != "2001:db8::1" || n.Protocol != config.ProtocolHTTP || n.CACert != "" || n.ClientCert != "" || n.Insecure {
		t.Errorf("%+v", n)
	}
	if o := c.OVN; o.SB != "tcp:192.0.2.9:6642" || o.TLS != (config.TLS{}) {
		t.Errorf("%+v", o)
	}
	r, c := convert(t, "")
	if n := c.Metadata.Nova; n.Hosts[0] != "127.0.0.1" || n.Port != 8775 || r.HasSecret || c.OVN.VSwitch != config.Default().OVN.VSwitch {
		t.Errorf("%+v", n)
	}
	for text, want := range map[string]string{
		"[DEFAULT]\nnova_metadata_protocol=https\nnova_metadata_insecure=True\nauth_ca_cert=/a\n": "auth_ca_cert: nova_metadata_insecure is true",
		"[DEFAULT]\nnova_metadata_protocol=https\nnova_client_cert=/a\n":                          "nova_client_cert: nova_client_priv_key is not given",
		"[DEFAULT]\nauth_ca_cert=/a\n":                              "auth_ca_cert: nova_metadata_protocol is http",
		"[ovn]\novn_sb_connection=ssl:a:1\novn_sb_private_key=/k\n": "ovn_sb_private_key: ovn_sb_private_key, ovn_sb_certificate, ovn_sb_ca_cert are not all given",
		"[ovn]\novn_sb_private_key=/k\n":                            "ovn_sb_private_key: ovn_sb_connection has no ssl: endpoint",
		"[metadata_rate_limiting]\nrate_limit_enabled=true\nbase_query_rate_limit=95\nburst_query_rate_limit=40\nip_versions=6\n": "ip_versions: 6: the limit is that of both",
		"[metadata_rate_limiting]\nrate_limit_enabled=true\n":                                                                     "a boot makes about 30",
		"[OVS]\nbridge_mappings=a:b\n[Oslo_Policy]\nx=y\n":                                                                        "[oslo_policy] x: it is of Python's libraries",
		"[strange\x01]\nk\u2028ey = v\n":                                                                                          "[strange?] k?ey: Sluice has no counterpart",
	} {
		if r, _ := convert(t, text); !strings.Contains(string(r.YAML), want) {
			t.Errorf("%q\n%s\nwant %s", text, r.YAML, want)
		}
	}
	if _, c := convert(t, "[metadata_rate_limiting]\nrate_limit_enabled=true\nbase_query_rate_limit=95\nburst_query_rate_limit=40\n[DEFAULT]\ndebug=1"); c.Metadata.Limits.Rate != 10 || c.Metadata.Limits.Burst != 40 || c.Log.Level != logging.LevelDebug {
		t.Errorf("%+v", c.Metadata.Limits)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"a = b\n":                               "f.ini:1: an option is in no section",
		"[DEFAULT\n":                            "f.ini:1: a section is written as [NAME]",
		"[]\n":                                  "f.ini:1: a section is written as [NAME]",
		"[a]\n\n  b\n":                          "f.ini:3: a continued line has no option before it",
		"[a]\n= b\n":                            "f.ini:2: an option has no name",
		"[a]\nb\n":                              "f.ini:2: neither a section nor an option",
		"[DEFAULT]\ndebug=2\n":                  "[DEFAULT] debug is neither true nor false",
		"[DEFAULT]\nnova_metadata_port=x\n":     "[DEFAULT] nova_metadata_port is no number from 0 to 65535",
		"[DEFAULT]\nnova_metadata_port=70000\n": "[DEFAULT] nova_metadata_port is no number from 0 to 65535",
		"[DEFAULT]\nnova_metadata_protocol=https\nauth_ca_cert=$nothing/ca\n":      "auth_ca_cert refers to nothing, which is not in these files",
		"[DEFAULT]\nnova_metadata_host=$nova_metadata_host\n":                      "nova_metadata_host refers to itself",
		"[DEFAULT]\nmetadata_proxy_shared_secret=\" a\"\n":                         "metadata_proxy_shared_secret has several lines, or spaces",
		"[DEFAULT]\nmetadata_proxy_shared_secret=a\n b\n":                          "metadata_proxy_shared_secret has several lines, or spaces",
		"[DEFAULT]\nnova_metadata_host=http://a\n":                                 "metadata.nova.hosts[0]: \"http://a\" is no address or name",
		"[DEFAULT]\nnova_metadata_protocol=https\nauth_ca_cert=ca.pem\n":           "metadata.nova.caCert: \"ca.pem\" is not an absolute path",
		"[ovn]\novn_sb_connection=192.0.2.1\n":                                     "ovn.sb: \"192.0.2.1\" is not a database endpoint",
		"[ovn]\novsdb_probe_interval=-1\n":                                         "ovsdb_probe_interval is no number of milliseconds",
		"[metadata_rate_limiting]\nrate_limit_enabled=1\nbase_window_duration=0\n": "base_window_duration and the other durations and limits cannot be 0",
	} {
		var o Options
		err := o.Read("f.ini", text)
		if err == nil {
			_, err = o.Convert("/s")
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	// What is wrong is told without the secret.
	var o Options
	if err := o.Read("f.ini", "[DEFAULT]\nmetadata_proxy_shared_secret=\" horse\"\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Convert("/s"); err == nil || strings.Contains(err.Error(), "horse") {
		t.Errorf("%v", err)
	}
}

// Whatever is taken becomes a configuration, and the secret is not in it.
// The old name of the host counts where the new one is not given.
func TestOldNameOfTheHost(t *testing.T) {
	const old = "[DEFAULT]\nnova_metadata_ip = 192.0.2.7\n"
	r, c := convert(t, old)
	if len(c.Metadata.Nova.Hosts) != 1 || c.Metadata.Nova.Hosts[0] != "192.0.2.7" || strings.Contains(string(r.YAML), "nova_metadata") {
		t.Errorf("%v\n%s", c.Metadata.Nova.Hosts, r.YAML)
	}
	r, c = convert(t, old+"nova_metadata_host = 192.0.2.8\n")
	if len(c.Metadata.Nova.Hosts) != 1 || c.Metadata.Nova.Hosts[0] != "192.0.2.8" || !strings.Contains(string(r.YAML), "nova_metadata_ip: nova_metadata_host takes precedence") {
		t.Errorf("%v\n%s", c.Metadata.Nova.Hosts, r.YAML)
	}
}

func FuzzConvert(f *testing.F) {
	f.Add(agent, "[DEFAULT]\nmetadata_proxy_shared_secret = kkkkkkkkkkkkkkkk\n")
	f.Add("[a]\nb=c\n d\n", "[DEFAULT]\nnova_metadata_host: $x\nx=${a.b}\n")
	f.Add("[metadata_rate_limiting]\nrate_limit_enabled=true\n", "[strange\u2028]\r\n\x00=\x7f")
	f.Fuzz(func(t *testing.T, one, two string) {
		if len(one)+len(two) > 1<<14 {
			return
		}
		var o Options
		if o.Read("one.ini", one) != nil || o.Read("two.ini", two) != nil {
			return
		}
		r, err := o.Convert("/etc/sluice/metadata-secret")
		if err != nil {
			return
		}
		c, err := config.Parse("out", r.YAML)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.YAML)
		}
		if c.Metadata.Nova.SecretFile != "/etc/sluice/metadata-secret" {
			t.Errorf("%+v", c.Metadata.Nova)
		}
		if r.HasSecret && strings.ContainsAny(r.Secret, "\r\n") {
			t.Errorf("the secret %q has several lines", r.Secret)
		}
	})
}
