package metrics

import "github.com/ovn-sluice/sluice/pkg/status"

// Status is the metrics of a status.Registry.
type Status struct{ ready, objects, errors *Metric }

// Status declares them. components says whose they are, and lists them.
func (l *List) Status(components string) Status {
	return Status{
		ready:   l.Gauge("sluice_component_ready", "1 when a component of "+components+" does its work, else 0.", "component"),
		objects: l.Gauge("sluice_objects", "Objects by kind, state (ok, pending, withheld, warning, error) and reason.", "kind", "state", "reason"),
		errors:  l.Counter("sluice_object_errors_total", "Errors of objects that appeared since the start, by kind and reason.", "kind", "reason"),
	}
}

// AddStatus serves the objects and components of a status registry.
func (r *Registry) AddStatus(m Status, s *status.Registry) {
	r.Add("status", func(e Emitter) error {
		for _, c := range s.Conditions() {
			e.Emit(m.ready, Flag(c.Ready), c.Name)
		}
		for _, c := range s.Counts() {
			e.Emit(m.objects, float64(c.Count), c.Kind, string(c.State), c.Reason)
		}
		for c, n := range s.Errors() {
			e.Emit(m.errors, float64(n), c.Kind, c.Reason)
		}
		return nil
	})
}
