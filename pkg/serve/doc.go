// Package serve is the HTTP listener of metrics and health.
//
//	/metrics  Prometheus
//	/livez    200 while the daemon's own check succeeds
//	/readyz   200 when every required component is ready; else 503 and which not
//	/debug/pprof/  where http.pprof is set
//
// TLS and basic authentication are those of the Prometheus exporter-toolkit,
// for all paths alike. /readyz is about this daemon's work, not about
// forwarding, which goes on without it.
package serve
