// Package config reads the one configuration file of sluiced.
//
// It owns the file's shape, its defaults and its rules; package configfile reads
// it. Everything about OVN
// has a default that the daemon finds at run time in the local Open_vSwitch
// database, so that the smallest working file is an AS number and a neighbour:
//
//	bgp:
//	  asn: 64512
//	  neighbors:
//	    - address: 192.0.2.1
//
// Promises:
//   - A mistake is an error that names the file, the line, the column, the key and
//     the fix, and all of them are reported at once.
//   - A Config that Load or Parse returned is complete and consistent: every
//     default is filled in.
//
// It never reads OVN, opens a socket or changes the system. The comments of
// the fields are the reference manual: docs/reference/config.md is made of them.
package config

//go:generate go run ../../tools/docgen config sluiced ../../docs/reference/config.md
