package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/rest"
)

// paging are the arguments of a list that are no attributes.
var paging = []string{"limit", "marker", "sort", "sort_key", "sort_dir", "page_reverse", "fields", "tags", "tags-any", "not-tags", "not-tags-any"}

// attributesOf are the fields of an answer's struct, by the attributes' names.
func attributesOf(object any) map[string]int {
	t := reflect.TypeOf(object)
	out := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		out[name] = i
	}
	return out
}

// scalar is an attribute as a list's query has it; empty for null. Collections are none.
func scalar(v reflect.Value) (text string, is bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return "", v.Type().Elem().Kind() != reflect.Struct
		}
		return scalar(v.Elem())
	case reflect.String:
		return v.String(), true
	case reflect.Bool:
		return strconv.FormatBool(v.Bool()), true
	case reflect.Int, reflect.Uint16:
		return fmt.Sprint(v.Interface()), true
	}
	return "", false
}

// listing is what a list's query asks for.
type listing struct {
	attributes map[string]int
	filters    map[string][]string
	tags       [4][]string // tags, tags-any, not-tags, not-tags-any
	order      []order
	limit      int // 0: none
	marker     string
	reverse    bool
	fields     []string
}

// order is an attribute to sort by: a field of the answer's struct.
type order struct {
	field      int
	descending bool
}

// listingOf reads a query. An attribute that the objects of the list do not have is an error; more are those
// that they have and do not show.
func listingOf(q *request, object any, more map[string]string) (l listing, err error) {
	query := q.URL.Query()
	known := attributesOf(object)
	l.attributes, l.filters = known, map[string][]string{}
	for _, key := range sortedKeys(query) {
		if slices.Contains(paging, key) {
			continue
		}
		_, hidden := more[key]
		if field, is := known[key]; is {
			_, hidden = scalar(reflect.ValueOf(object).Field(field))
		}
		if !hidden || key == "tenant_id" {
			return l, fail(http.StatusBadRequest, "One or more arguments are either duplicate or invalid")
		}
		l.filters[key] = query[key]
	}
	for _, project := range l.filters["project_id"] {
		if !q.caller.Reads(project) {
			return l, errPolicy
		}
	}
	for i, key := range []string{"tags", "tags-any", "not-tags", "not-tags-any"} {
		if query.Has(key) {
			l.tags[i] = strings.Split(strings.Join(query[key], ","), ",")
		}
	}
	l.marker, l.fields = query.Get("marker"), query["fields"]
	l.reverse, _ = strconv.ParseBool(query.Get("page_reverse"))
	if text := query.Get("limit"); text != "" {
		if l.limit, err = strconv.Atoi(text); err != nil {
			return l, frameworkError(http.StatusBadRequest, "Bad Request", fmt.Sprintf("Supplied pagination limit '%s' is not valid.", text))
		}
		l.limit = max(l.limit, 0)
	}
	l.order, err = orderOf(query, known)
	return l, err
}

// orderOf reads sort=KEY[:DIRECTION],… or sort_key and sort_dir.
func orderOf(query url.Values, known map[string]int) (out []order, err error) {
	words := query["sort"]
	for i, key := range query["sort_key"] {
		if direction := query["sort_dir"]; i < len(direction) {
			key += ":" + direction[i]
		}
		words = append(words, key)
	}
	for _, word := range strings.Split(strings.Join(words, ","), ",") {
		key, direction, _ := strings.Cut(word, ":")
		switch _, is := known[key]; {
		case key == "":
			continue
		case !is:
			return nil, fail(http.StatusBadRequest, "Supplied sort key '%s' is not valid.", key)
		case direction != "" && direction != "asc" && direction != "desc":
			return nil, frameworkError(http.StatusBadRequest, "Bad Request", fmt.Sprintf("Supplied sort direction '%s' is not valid.", direction))
		}
		out = append(out, order{known[key], direction == "desc"})
	}
	return append(out, order{field: known["created_at"]}, order{field: known["id"]}), nil
}

func compareAttributes(a, b reflect.Value) int {
	if a.Kind() == reflect.Int {
		return cmp.Compare(a.Int(), b.Int())
	}
	if a.Kind() == reflect.Uint16 {
		return cmp.Compare(a.Uint(), b.Uint())
	}
	x, _ := scalar(a)
	y, _ := scalar(b)
	return cmp.Compare(x, y)
}

func (l listing) compare(a, b reflect.Value) int {
	for _, o := range l.order {
		c := compareAttributes(a.Field(o.field), b.Field(o.field))
		if o.descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// takes tells whether an object is one that the query asks for.
func (l listing) takes(object reflect.Value, more map[string]string) bool {
	for key, values := range l.filters {
		have, hidden := more[key]
		folded := false
		if !hidden {
			v := object.Field(l.attributes[key])
			have, _ = scalar(v)
			folded = v.Kind() == reflect.Bool
		}
		if !slices.ContainsFunc(values, func(v string) bool { return v == have || folded && strings.EqualFold(v, have) }) {
			return false
		}
	}
	if !slices.ContainsFunc(l.tags[:], func(tags []string) bool { return tags != nil }) {
		return true
	}
	tags, _ := object.Field(l.attributes["tags"]).Interface().([]string)
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	lacks := func(tag string) bool { return !has(tag) }
	all, anyOf, notAll, notAny := l.tags[0], l.tags[1], l.tags[2], l.tags[3]
	return !slices.ContainsFunc(all, lacks) && (anyOf == nil || slices.ContainsFunc(anyOf, has)) &&
		(notAll == nil || slices.ContainsFunc(notAll, lacks)) && !slices.ContainsFunc(notAny, has)
}

// answerList answers with those of the objects, which the caller may see, that the query asks for. more are
// attributes of an object that it does not show.
func answerList[T any](q *request, name string, all []T, more func(T) map[string]string) (int, any, error) {
	if more == nil {
		more = func(T) map[string]string { return nil }
	}
	var none T
	l, err := listingOf(q, none, more(none))
	if err != nil {
		return 0, nil, err
	}
	id := func(object reflect.Value) string { return object.Field(l.attributes["id"]).String() }
	objects := reflect.ValueOf(all)
	var found []reflect.Value
	var marker *reflect.Value
	for i := range all {
		o := objects.Index(i)
		if l.marker != "" && id(o) == l.marker {
			marker = &o
		}
		if l.takes(o, more(all[i])) {
			found = append(found, o)
		}
	}
	if l.marker != "" && marker == nil {
		return 0, nil, fail(http.StatusBadRequest, "Supplied pagination marker '%s' is not valid.", l.marker)
	}
	slices.SortFunc(found, l.compare)
	found = l.page(found, marker)
	out := make([]any, len(found))
	for i, o := range found {
		out[i] = projected(o.Interface(), l.fields)
	}
	links := []link{}
	if len(found) > 0 {
		links = l.links(q, id(found[0]), id(found[len(found)-1]), len(found))
	}
	return http.StatusOK, map[string]any{name: out, name + "_links": links}, nil
}

// page is the part of a sorted list after a marker, or before it, of the length that the limit allows.
func (l listing) page(sorted []reflect.Value, marker *reflect.Value) []reflect.Value {
	back := l.reverse && marker != nil
	if marker != nil {
		sorted = slices.DeleteFunc(sorted, func(o reflect.Value) bool {
			c := l.compare(o, *marker)
			return c == 0 || (c < 0) != back
		})
	}
	switch {
	case l.limit == 0 || len(sorted) <= l.limit:
		return sorted
	case back:
		return sorted[len(sorted)-l.limit:]
	}
	return sorted[:l.limit]
}

// link leads to another page of a list.
type link struct {
	Href string `json:"href"`
	Rel  string `json:"rel"`
}

// links are those of a page, from its first to its last object: back to where a marker came from, and on if
// the page is full.
func (l listing) links(q *request, first, last string, n int) []link {
	out := []link{}
	if l.limit == 0 {
		return out
	}
	arguments := "?limit=" + strconv.Itoa(l.limit)
	for _, key := range []string{"sort", "sort_key"} {
		if v := q.URL.Query().Get(key); v != "" {
			arguments += "&" + key + "=" + url.QueryEscape(v)
		}
	}
	arguments = strings.ReplaceAll(strings.ReplaceAll(arguments, "%3A", ":"), "%2C", ",")
	base := rest.Origin(q.Request) + q.URL.Path + arguments + "&marker="
	if l.marker != "" {
		out = append(out, link{base + first + "&page_reverse=True", "previous"})
	}
	if n >= l.limit {
		out = append(out, link{base + last, "next"})
	}
	return out
}

// projected is an object with the named attributes only; with all, if none is named.
func projected(object any, names []string) any {
	if len(names) == 0 {
		return object
	}
	out := map[string]json.RawMessage{}
	for name, field := range attributesOf(object) {
		if !slices.Contains(names, name) {
			continue
		}
		raw, err := json.Marshal(reflect.ValueOf(object).Field(field).Interface())
		if err == nil { // attributes always marshal
			out[name] = raw
		}
	}
	return out
}

// answerOne answers with an object, or with what of it the query names.
func answerOne(q *request, name string, object any, err error) (int, any, error) {
	return http.StatusOK, map[string]any{name: projected(object, q.URL.Query()["fields"])}, err
}
