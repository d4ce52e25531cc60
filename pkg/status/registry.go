package status

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ovn-sluice/sluice/pkg/reason"
)

// Registry holds the state of all objects and components.
type Registry struct {
	log *slog.Logger
	now func() time.Time

	mu         sync.Mutex
	objects    map[objectID]Object
	bySource   map[string]map[objectID]struct{}
	errors     map[ErrorCount]uint64
	conditions map[string]Condition
}

// ErrorCount names a counter of errors that appeared.
type ErrorCount struct{ Kind, Reason string }

// NewRegistry makes an empty registry.
func NewRegistry(log *slog.Logger) *Registry {
	return &Registry{
		log:        log,
		now:        time.Now,
		objects:    map[objectID]Object{},
		bySource:   map[string]map[objectID]struct{}{},
		errors:     map[ErrorCount]uint64{},
		conditions: map[string]Condition{},
	}
}

// Reporter reports the objects of one source.
type Reporter struct {
	r      *Registry
	source string
}

// Reporter makes the reporter of a source. Two with the same name share their
// objects.
func (r *Registry) Reporter(source string) *Reporter { return &Reporter{r: r, source: source} }

// Set reports one object. Its Source and Since are filled in.
func (p *Reporter) Set(o Object) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.set(p.source, o)
}

// Delete reports that an object is gone.
func (p *Reporter) Delete(kind, key string) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	p.r.remove(objectID{p.source, kind, key})
}

// Replace reports all objects of the source: those that it had before and that
// are not among them are gone. The last of two with one kind and key counts.
func (p *Reporter) Replace(objects []Object) {
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	keep := make(map[objectID]struct{}, len(objects))
	for _, o := range objects {
		o.Source = p.source
		keep[o.id()] = struct{}{}
	}
	for id := range p.r.bySource[p.source] {
		if _, ok := keep[id]; !ok {
			p.r.remove(id)
		}
	}
	for _, o := range objects {
		p.r.set(p.source, o)
	}
}

func (r *Registry) set(source string, o Object) {
	o.Source = source
	id := o.id()
	old, had := r.objects[id]
	if had && old.same(o) {
		return
	}
	o.Since = r.now()
	r.objects[id] = o
	if r.bySource[source] == nil {
		r.bySource[source] = map[objectID]struct{}{}
	}
	r.bySource[source][id] = struct{}{}
	if o.State == Error && (old.State != Error || old.Reason != o.Reason) {
		r.errors[ErrorCount{o.Kind, o.Reason}]++
	}
	switch {
	case o.State.Logged():
		level := slog.LevelError
		if o.State == Warning {
			level = slog.LevelWarn
		}
		r.log.LogAttrs(context.Background(), level, "object has a problem", attrs(o)...)
	case old.State.Logged():
		r.log.LogAttrs(context.Background(), slog.LevelInfo, "problem of an object ended", attrs(o)...)
	}
}

func (r *Registry) remove(id objectID) {
	old, had := r.objects[id]
	if !had {
		return
	}
	delete(r.objects, id)
	delete(r.bySource[id.source], id)
	if old.State.Logged() {
		r.log.LogAttrs(context.Background(), slog.LevelInfo, "problem of an object ended", attrs(old)...)
	}
}

func attrs(o Object) []slog.Attr {
	a := []slog.Attr{
		slog.String("source", o.Source), slog.String("kind", o.Kind), slog.String("key", o.Key), slog.String("state", string(o.State)),
	}
	if o.Reason != "" {
		a = append(a, slog.String("reason", o.Reason))
	}
	if o.Error != "" {
		a = append(a, slog.String("error", o.Error))
	}
	return a
}

// Require names the components that Ready waits for. A component that was never
// reported is not ready, with the reason "starting".
func (r *Registry) Require(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range names {
		c, ok := r.conditions[n]
		if !ok {
			c = Condition{Name: n, Reason: reason.Starting, Since: r.now()}
		}
		c.Required = true
		r.conditions[n] = c
	}
}

// Await says what a required component that has reported nothing yet waits for.
func (r *Registry) Await(name, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.conditions[name]; ok && c.Reason == reason.Starting {
		c.Detail = what
		r.conditions[name] = c
	}
}

// SetCondition reports a component. Changes are logged once.
func (r *Registry) SetCondition(name string, ready bool, why, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, had := r.conditions[name]
	if had && old.Ready == ready && old.Reason == why && old.Detail == detail {
		return
	}
	c := Condition{Name: name, Ready: ready, Required: old.Required, Reason: why, Detail: detail, Since: old.Since}
	if !had || old.Ready != ready || old.Reason != why {
		c.Since = r.now()
		level := slog.LevelInfo
		if !ready && (old.Ready || reason.Failure(why)) {
			level = slog.LevelWarn
		}
		r.log.LogAttrs(context.Background(), level, "component changed", slog.String("component", name),
			slog.Bool("ready", ready), slog.String("reason", why), slog.String("detail", detail))
	}
	r.conditions[name] = c
}

// Ready tells whether all required components are ready, and which are not.
func (r *Registry) Ready() (bool, []Condition) {
	var missing []Condition
	for _, c := range r.Conditions() {
		if c.Required && !c.Ready {
			missing = append(missing, c)
		}
	}
	return len(missing) == 0, missing
}

// Conditions lists all components by name.
func (r *Registry) Conditions() []Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.conditions), func(a, b Condition) int { return cmp.Compare(a.Name, b.Name) })
}

// Objects lists the objects that keep accepts, by kind and key; all for nil.
func (r *Registry) Objects(keep func(Object) bool) []Object {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := []Object{}
	for _, o := range r.objects {
		if keep == nil || keep(o) {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, compareObjects)
	return out
}

// Problems lists the objects that are not ok, by kind and key.
func (r *Registry) Problems() []Object {
	return r.Objects(func(o Object) bool { return o.State != OK })
}

// Get is one object of one source.
func (r *Registry) Get(source, kind, key string) (Object, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	o, ok := r.objects[objectID{source, kind, key}]
	return o, ok
}
