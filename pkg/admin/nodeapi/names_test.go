package nodeapi

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// Every name in the JSON of the answers is camelCase, as the reference says.
func TestNamesInJSON(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)
	seen := map[reflect.Type]bool{}
	var look func(reflect.Type)
	look = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			look(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if _, text := typ.MethodByName("MarshalText"); text || seen[typ] {
			return
		}
		seen[typ] = true
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Anonymous {
				look(f.Type)
				continue
			}
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "-" {
				continue
			}
			if !name.MatchString(tag) {
				t.Errorf("%s.%s is %q in JSON", typ, f.Name, tag)
			}
			look(f.Type)
		}
	}
	for _, v := range []any{
		status.Status{}, status.VRF{}, status.Route{}, status.BGP{}, status.BGPRoute{}, status.Underlay{}, status.Drops{}, status.Drop{}, status.Diff{},
		status.Explanation{}, status.Trace{}, status.Plan{}, status.Object{}, status.Version{}, status.Cleanup{}, VRFSelector{}, Text{},
		status.Query{}, status.TraceRequest{}, status.MetadataProxy{}, status.MetadataRequest{},
	} {
		look(reflect.TypeOf(v))
	}
	if len(seen) < 20 {
		t.Errorf("only %d types were looked at", len(seen))
	}
}
