package main

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	controller "github.com/ovn-sluice/sluice/cmd/sluice-controller/config"
	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// configurations are the files that have a page, by their program.
var configurations = map[string]struct {
	intro string
	// defaults is the struct that an empty file gives.
	defaults any
}{
	"sluiced":           {sluicedIntro, *config.Default()},
	"sluice-controller": {controllerIntro, *controller.Default()},
}

const controllerIntro = `# Configuration of sluice-controller

One file, ` + "`" + controller.DefaultPath + "`" + `. Unknown keys and bad values are errors that name the line
and the fix; ` + "`sluice-controller --check FILE`" + ` prints the whole effective configuration.
`

const sluicedIntro = `# Configuration of sluiced

One file, ` + "`" + config.DefaultPath + "`" + `. Unknown keys and bad values are errors that name the line
and the fix; ` + "`sluiced --check FILE`" + ` prints the whole effective configuration. The
smallest working file is:

` + "```yaml" + `
bgp: {asn: 64512, neighbors: [{address: 192.0.2.7}]}
` + "```" + `

Durations are written with a unit: ` + "`90s`, `1m30s`" + `.
`

// comments holds the doc comments of types ("Config") and fields ("Config.OVN") by the path of
// their package, which is read when it is first asked for.
type comments struct {
	// module is the path of the module, and root its directory.
	module, root string
	packages     map[string]map[string]string
}

// moduleComments are those of the module that the working directory is in.
func moduleComments() (*comments, error) {
	dir, err := filepath.Abs(".")
	if err != nil {
		return nil, err
	}
	for {
		b, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if line, _, _ := strings.Cut(string(b), "\n"); err == nil {
			return &comments{module: strings.TrimPrefix(line, "module "), root: dir, packages: map[string]map[string]string{}}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return nil, fmt.Errorf("looking for go.mod: %w", err)
		}
		dir = filepath.Dir(dir)
	}
}

// of is the comment of a type, or of one of its fields.
func (c *comments) of(t reflect.Type, field string) (string, error) {
	docs, ok := c.packages[t.PkgPath()]
	if !ok {
		below, inside := strings.CutPrefix(t.PkgPath(), c.module)
		if !inside {
			return "", fmt.Errorf("%s is not of module %s: its comments cannot be read", t, c.module)
		}
		var err error
		if docs, err = readComments(filepath.Join(c.root, below)); err != nil {
			return "", err
		}
		c.packages[t.PkgPath()] = docs
	}
	name := t.Name()
	if field != "" {
		name += "." + field
	}
	doc := docs[name]
	if doc == "" {
		return "", fmt.Errorf("%s of %s has no comment", name, t.PkgPath())
	}
	return doc, nil
}

func readComments(dir string) (map[string]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				addComments(out, g)
			}
		}
	}
	return out, nil
}

func addComments(to map[string]string, g *ast.GenDecl) {
	for _, s := range g.Specs {
		t, ok := s.(*ast.TypeSpec)
		if !ok {
			continue
		}
		to[t.Name.Name] = oneLine(g.Doc.Text())
		st, ok := t.Type.(*ast.StructType)
		if !ok {
			continue
		}
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				to[t.Name.Name+"."+n.Name] = oneLine(f.Doc.Text())
			}
		}
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// configPage is the reference of a configuration file: the struct with its defaults, and the
// comments of its fields.
func configPage(w *bytes.Buffer, intro string, defaults any) error {
	docs, err := moduleComments()
	if err != nil {
		return err
	}
	w.WriteString(intro)
	p := &page{w: w, docs: docs}
	p.section("", reflect.ValueOf(defaults))
	return errors.Join(p.errs...)
}

// page writes a section per struct, inner ones after the outer one.
type page struct {
	w    *bytes.Buffer
	docs *comments
	errs []error
}

// doc is a comment of the source; that there is none is an error.
func (p *page) doc(t reflect.Type, field string) string {
	doc, err := p.docs.of(t, field)
	if err != nil {
		p.errs = append(p.errs, err)
	}
	return doc
}

func (p *page) section(path string, v reflect.Value) {
	t := v.Type()
	if path == "" {
		p.w.WriteString("\n## Top level\n\n")
	} else {
		fmt.Fprintf(p.w, "\n## %s\n\n%s\n\n", path, sentence(p.doc(t, ""), t.Name(), path))
	}
	p.w.WriteString("| key | type | default | meaning |\n| --- | --- | --- | --- |\n")
	type inner struct {
		path string
		v    reflect.Value
	}
	var next []inner
	for i := range t.NumField() {
		f := t.Field(i)
		doc, key := p.doc(t, f.Name), f.Tag.Get("yaml")
		if key == "" {
			p.errs = append(p.errs, fmt.Errorf("field %s.%s has no yaml tag", t, f.Name))
		}
		sub := key
		if path != "" {
			sub = path + "." + key
		}
		fmt.Fprintf(p.w, "| `%s` | %s | %s | %s |\n", key, typeName(f.Type), defaultText(v.Field(i)), sentence(doc, f.Name, key))
		switch {
		case isSection(f.Type):
			next = append(next, inner{sub, v.Field(i)})
		case f.Type.Kind() == reflect.Slice && isSection(f.Type.Elem()):
			next = append(next, inner{sub + "[]", configfile.NewElement(f.Type.Elem())})
		case f.Type.Kind() == reflect.Map && isSection(f.Type.Elem()):
			next = append(next, inner{sub + ".<" + typeName(f.Type.Key()) + ">", configfile.NewElement(f.Type.Elem())})
		}
	}
	for _, n := range next {
		p.section(n.path, n.v)
	}
}

// sentence makes a Go comment, which starts with the Go name, one about the key.
func sentence(doc, name, key string) string {
	rest, ok := strings.CutPrefix(doc, name+" ")
	if !ok {
		return doc
	}
	for _, verb := range []string{"is ", "are "} {
		if s, ok := strings.CutPrefix(rest, verb); ok {
			return strings.ToUpper(s[:1]) + s[1:]
		}
	}
	return "`" + key + "` " + rest
}

func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}

func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[intent.MAC]():
		return "MAC"
	case reflect.TypeFor[intent.VNI]():
		return "VNI"
	case reflect.TypeFor[intent.RouteTarget]():
		return "route target"
	case reflect.TypeFor[configfile.Duration]():
		return "duration"
	case reflect.TypeFor[configfile.Secret]():
		return "text"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true, false"
	case reflect.Slice:
		if isSection(t.Elem()) {
			return "list, see below"
		}
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		if isSection(t.Elem()) {
			return "by " + typeName(t.Key()) + ", see below"
		}
		return "by " + typeName(t.Key()) + ": " + typeName(t.Elem())
	case reflect.String:
		return "text"
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		return "number"
	case reflect.Struct:
		if isSection(t) {
			return "see below"
		}
		return strings.ToLower(strings.TrimPrefix(t.Name(), "netip."))
	}
	return t.String()
}

func defaultText(v reflect.Value) string {
	if v.Kind() == reflect.Slice || v.Kind() == reflect.Map || isSection(v.Type()) {
		return ""
	}
	switch x := v.Interface().(type) {
	case encoding.TextMarshaler:
		if b, err := x.MarshalText(); err == nil && !v.IsZero() {
			return "`" + string(b) + "`"
		}
		if _, ok := x.(configfile.Duration); ok {
			return "`0s`"
		}
		return ""
	case string:
		if x == "" {
			return ""
		}
	}
	if s := fmt.Sprint(v.Interface()); s != "" {
		return "`" + s + "`"
	}
	return ""
}
