// Package openstack puts the APIs where clients look for them: at the root, for clients without Keystone, which
// take one address for every service, and below /load-balancer and /network, as Keystone's catalogue has them.
//
// Its tests replay what a real Octavia was asked and has answered (testdata/records.jsonl.gz, made by
// tools/records). Where the answer is another one, testdata/differences.txt says why.
package openstack
