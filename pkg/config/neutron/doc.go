// Package neutron reads configuration files of Neutron's OVN metadata agent, and tells
// what Sluice's configuration is with the same meaning.
//
// It owns the two forms' difference: oslo.config's files on the one side
// (oslo_config/iniparser.py), whose options are those of neutron/conf/agent/metadata and
// neutron/conf/plugins/ml2/drivers/ovn; on the other side YAML that config.Parse takes.
//
// Promises:
//   - An option that has no counterpart is named, with the reason; none is lost in
//     silence.
//   - No value of an option that it does not know is ever told, and the shared secret to
//     nobody but who asks for it: those files have passwords.
//
// Import alone reads files, and writes the secret to one.
package neutron
