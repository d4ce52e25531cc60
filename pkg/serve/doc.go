// Package serve is an HTTP server: its address, its TLS, its limits. A program mounts handlers on
// paths with Mount, and what it tells of itself with MountHealth:
//
//	/metrics  Prometheus
//	/livez    200 while the program's own check succeeds
//	/readyz   200 when every required component is ready; else 503 and which not
//	/debug/pprof/  where Health.PProf is set
//
// /readyz is about the work of the program. Forwarding goes on without it.
//
// Promises:
//   - TLS is either that of a certificate, its key and a client CA, or that of a file of the Prometheus
//     exporter-toolkit, which has basic authentication, too. It holds for all paths alike.
//   - The files of certificates are read for each connection: a changed one needs no restart.
//   - A handler below Mount gets no body above Config.LargestBody, and there are never more than
//     Config.MostRequests in them. Paths of MountHealth answer also when that many are busy.
//   - A limit of Config that is 0 does not hold.
//   - An error begins with the name of the field of Config that it is about.
//
// It knows no program's configuration.
package serve
