package neutron

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/controlplane/rest"
)

// failure is an error of Neutron's.
type failure struct {
	status     int
	kind, text string
}

func (e *failure) Error() string { return e.text }

func badRequest(format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, "HTTPBadRequest", fmt.Sprintf(format, args...)}
}

// link leads to another page of a list.
type link struct {
	Rel  string `json:"rel"`
	Href string `json:"href"`
}

// order is an attribute to sort by.
type order struct {
	key        string
	descending bool
}

// orderOf reads sort_key and sort_dir, which come in pairs. IDs come last: with them an order is one.
func orderOf(query url.Values, known map[string]string) (out []order, err error) {
	keys, directions := query["sort_key"], query["sort_dir"]
	if len(keys) != len(directions) {
		return nil, badRequest("The number of sort_keys and sort_dirs must be same")
	}
	for i, key := range keys {
		if _, is := known[key]; !is {
			return nil, badRequest("['%s'] is invalid attribute for sort_keys", key)
		}
		if directions[i] != "asc" && directions[i] != "desc" {
			return nil, badRequest("['%s'] is invalid value for sort_dirs, valid value is 'asc' and 'desc'", directions[i])
		}
		out = append(out, order{key, directions[i] == "desc"})
	}
	return append(out, order{key: "id"}), nil
}

func compare(by []order, a, b object) int {
	for _, o := range by {
		c := cmp.Compare(a.attributes[o.key], b.attributes[o.key])
		if o.descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// page is the part of a list of networks, subnets or ports (title says which) that a query asks for, with
// the links to its neighbours where it has a limit. all are sorted.
func page(r *http.Request, title string, all []object, known map[string]string) (out []object, links []link, err error) {
	query := r.URL.Query()
	by, err := orderOf(query, known)
	if err != nil {
		return nil, nil, err
	}
	slices.SortFunc(all, func(a, b object) int { return compare(by, a, b) })
	marker, reverse := query.Get("marker"), strings.EqualFold(query.Get("page_reverse"), "true")
	limit, text := 0, query.Get("limit")
	if limit, err = strconv.Atoi(cmp.Or(text, "0")); err != nil || limit < 0 {
		return nil, nil, &failure{http.StatusBadRequest, "BadRequest", fmt.Sprintf("Bad limit request: Limit must be an integer 0 or greater and not '%s'.", text)}
	}
	from := slices.IndexFunc(all, func(o object) bool { return o.attributes["id"] == marker })
	if marker != "" && limit > 0 && from < 0 {
		return nil, nil, notFound(title, marker)
	}
	for _, o := range all {
		if o.matches(query) {
			out = append(out, o)
		}
	}
	if limit == 0 {
		return out, nil, nil
	}
	if from >= 0 {
		at := all[from]
		out = slices.DeleteFunc(out, func(o object) bool {
			c := compare(by, o, at)
			return c == 0 || (c < 0) != reverse
		})
	}
	if len(out) > limit && reverse {
		out = out[len(out)-limit:]
	} else if len(out) > limit {
		out = out[:limit]
	}
	return out, linksOf(r, out, len(out) == limit || reverse), nil
}

func notFound(title, id string) *failure {
	return &failure{http.StatusNotFound, title + "NotFound", title + " " + id + " could not be found."}
}

// linksOf are those to the pages after and before one.
func linksOf(r *http.Request, list []object, more bool) (out []link) {
	var kept []string
	for _, argument := range strings.Split(r.URL.RawQuery, "&") {
		if name, _, _ := strings.Cut(argument, "="); name != "marker" && name != "page_reverse" {
			kept = append(kept, argument)
		}
	}
	base := rest.Origin(r) + r.URL.Path + "?" + strings.Join(kept, "&")
	if len(list) == 0 {
		return []link{{"previous", base + "&page_reverse=True"}}
	}
	if more {
		out = append(out, link{"next", base + "&marker=" + list[len(list)-1].attributes["id"]})
	}
	return append(out, link{"previous", base + "&marker=" + list[0].attributes["id"] + "&page_reverse=True"})
}

// projected is an object with the named attributes only; with all, if none is named.
func (o object) projected(query url.Values) any {
	if !query.Has("fields") {
		return o.body
	}
	var all map[string]json.RawMessage
	raw, err := json.Marshal(o.body)
	if err == nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return o.body // structs of strings and numbers always marshal
	}
	for name := range all {
		if !slices.Contains(query["fields"], name) {
			delete(all, name)
		}
	}
	return all
}
