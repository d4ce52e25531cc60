package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

var apiIntro = `# JSON of sluicectl and of the admin socket

` + "`sluicectl -o json`" + ` prints sluiced's answers on its socket, which is open to root only:

` + "```sh" + `
curl --unix-socket /run/sluice/sluiced.sock http://sluiced/v1/status
` + "```" + `

- Names are camelCase. Abbreviations are in capitals, except at the beginning of a name: ` + "`routerMAC`, `endOfRIB`, `vtep`" + `.
- An answer omits an optional field that is empty or unknown. If sluiced is down, ` + "`sluicectl`" + ` answers from the pinned maps,
  which lack wanted and announced state. A list that is not optional is ` + "`[]`" + ` when it is empty.
- A VRF is its VNI, a number. The default VRF, ` + "`default`" + ` in tables and metrics, is ` + fmt.Sprint(uint32(intent.DefaultVRF)) + `, one more than the largest VNI.
- A request is JSON in the body. The body of ` + "`Nothing`" + ` may be absent. An error is ` + "`{\"error\": \"…\"}`" + ` with status 400, 404, 408, 500, 503 or 504.
- sluiced executes a request with the header ` + "`Sluice-Deadline`" + `, nanoseconds of CLOCK_BOOTTIME, before that time, or never (408).
- A stream has one answer a line, as ` + "`{\"value\": …}`" + `.
- New versions add fields. A field keeps its name and meaning.

| path | request | answer | for |
| --- | --- | --- | --- |
`

// apiPage lists the endpoints of a program and the types of pkg/status.
func apiPage(w *bytes.Buffer, api, status string) error {
	w.WriteString(apiIntro)
	endpoints, err := parseFile(filepath.Join(api, "api.go"))
	if err != nil {
		return err
	}
	for _, s := range specs(endpoints, token.VAR) {
		if v, ok := s.(*ast.ValueSpec); ok {
			writeEndpoint(w, v)
		}
	}
	writeTypes(w, endpoints)
	for _, name := range []string{"object.go", "count.go", "explain.go", "report.go", "report_path.go", "underlay.go", "vip.go", "vm.go", "metadata.go", "metadata_proxy.go", "drain.go", "plan.go", "known.go"} {
		f, err := parseFile(filepath.Join(status, name))
		if err != nil {
			return err
		}
		writeTypes(w, f)
	}
	for _, name := range []string{"route.go", "vip.go", "underlay.go", "metadata.go"} {
		f, err := parseFile(filepath.Join(filepath.Dir(status), "intent", name))
		if err != nil {
			return err
		}
		writeTypes(w, f)
	}
	return nil
}

func parseFile(path string) (*ast.File, error) {
	return parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
}

func specs(f *ast.File, tok token.Token) []ast.Spec {
	var out []ast.Spec
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != tok {
			continue
		}
		for _, s := range g.Specs {
			if t, ok := s.(*ast.TypeSpec); ok && t.Doc == nil {
				t.Doc = g.Doc
			}
			out = append(out, s)
		}
	}
	return out
}

func writeEndpoint(w *bytes.Buffer, v *ast.ValueSpec) {
	call, ok := v.Values[0].(*ast.CallExpr)
	if !ok {
		return
	}
	generic, ok := call.Fun.(*ast.IndexListExpr)
	if !ok || len(generic.Indices) != 2 {
		return
	}
	path, ok := call.Args[0].(*ast.BasicLit)
	if !ok {
		return
	}
	fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", strings.Trim(path.Value, `"`), jsonType(generic.Indices[0]), jsonType(generic.Indices[1]),
		sentence(oneLine(v.Doc.Text()), v.Names[0].Name, v.Names[0].Name))
}

func writeTypes(w *bytes.Buffer, f *ast.File) {
	for _, s := range specs(f, token.TYPE) {
		t := s.(*ast.TypeSpec)
		st, ok := t.Type.(*ast.StructType)
		if !ok || !t.Name.IsExported() || len(st.Fields.List) == 0 || st.Fields.List[0].Tag == nil {
			continue
		}
		fmt.Fprintf(w, "\n## %s\n\n%s\n\n| field | type | meaning |\n| --- | --- | --- |\n", t.Name.Name, sentence(oneLine(t.Doc.Text()), t.Name.Name, t.Name.Name))
		for _, field := range st.Fields.List {
			if len(field.Names) == 0 {
				fmt.Fprintf(w, "| … | [%[1]s](#%[2]s) | The fields of %[1]s. |\n", jsonType(field.Type), strings.ToLower(jsonType(field.Type)))
				continue
			}
			name, optional := jsonName(field)
			if name == "-" {
				continue
			}
			typ := jsonType(field.Type)
			if optional {
				typ += ", optional"
			}
			doc := oneLine(field.Doc.Text())
			if len(field.Names) == 1 {
				doc = sentence(doc, field.Names[0].Name, name)
			}
			fmt.Fprintf(w, "| `%s` | %s | %s |\n", name, typ, doc)
		}
	}
}

func jsonName(f *ast.Field) (name string, optional bool) {
	if f.Tag == nil {
		return "", false
	}
	tag, err := strconv.Unquote(f.Tag.Value)
	if err != nil {
		return "", false
	}
	name, opts, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return name, opts != ""
}

// jsonType says how a Go type looks in JSON.
func jsonType(e ast.Expr) string {
	if list, ok := e.(*ast.ArrayType); ok {
		if id, ok := list.Elt.(*ast.Ident); ok && id.Name == "byte" {
			return "base64"
		}
		return "list of " + jsonType(list.Elt)
	}
	if known, ok := e.(*ast.StarExpr); ok {
		return jsonType(known.X)
	}
	switch name := types.ExprString(e); name {
	case "netip.Addr":
		return "IP address"
	case "netip.AddrPort":
		return "IP address and port"
	case "netip.Prefix":
		return "prefix"
	case "time.Time":
		return "time (RFC 3339)"
	case "intent.MAC":
		return "MAC"
	case "intent.VNI", "VNI":
		return "VNI, a number"
	case "intent.Protocol":
		return "tcp, udp, sctp"
	case "intent.UnderlayHops":
		return "list of UnderlayHop"
	case "intent.PortAddressSet":
		return "list of PortAddress"
	case "State":
		return "ok, pending, withheld, warning, error, unknown"
	case "BackendState":
		return "up, down, draining"
	case "MetadataPath":
		return "tap, namespace, ovn"
	case "Layer":
		return "ovn, intent, bgp, ovs, dataplane"
	case "bool":
		return "true, false"
	case "string":
		return "text"
	case "int", "uint8", "uint16", "uint32", "uint64", "time.Duration":
		return "number"
	default:
		return name[strings.LastIndex(name, ".")+1:]
	}
}
