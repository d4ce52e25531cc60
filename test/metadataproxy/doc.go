// Package metadataproxy holds the tests of "sluiced metadata" as a process: built, with a
// configuration and identities in files, in network namespaces, with a stand-in for Nova
// and one for a service manager. They are judged by what guests are answered.
package metadataproxy
