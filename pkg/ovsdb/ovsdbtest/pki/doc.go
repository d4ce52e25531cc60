// Package pki is a certificate authority in a directory, for tests and labs
// whose databases speak TLS.
//
// It owns the files that it writes there: the authority's certificate and key,
// and a certificate and key for each common name. Keys lie there unencrypted: it
// is for nothing else.
package pki
