package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

const root = "../.."

// Every relative link of the pages leads to a file, and every #anchor to a heading of its page.
func TestLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, pattern := range []string{"docs/*/*.md", "*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, more...)
	}
	if len(pages) < 50 {
		t.Errorf("only %d pages were found", len(pages))
	}
	for _, problem := range brokenLinks(t, pages) {
		t.Error(problem)
	}
}

// A link to no file, an anchor of no heading and a link out of code are told apart.
func TestBrokenLinks(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("b.md", "# One\n\n## What `sluicectl` says: 2 things\n\n## Twice\n\n## Twice\n\n```\n# not a heading\n```\n")
	a := write("a.md", "# A\n\n[1](b.md) [2](b.md#one) [3](b.md#what-sluicectl-says-2-things) [4](b.md#twice-1) [5](#a)\n"+
		"[6](c.md) [7](b.md#three) [8](#b) [9](b.md#not-a-heading) [10](https://example.org/c.md#x)\n"+
		"`[11](d.md)`\n\n```\n[12](e.md)\n```\n")
	got := brokenLinks(t, []string{a})
	want := []string{a + ": (#b)", a + ": (b.md#not-a-heading)", a + ": (b.md#three)", a + ": (c.md)"}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("found %q, want %q", got, want)
			break
		}
	}
	if len(got) != len(want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// Each direct dependency of go.mod has a row in docs/dependencies.md, and each row a dependency.
func TestDependenciesPage(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	// The linter and the scanner are run at a fixed version.
	direct, rows := map[string]bool{"honnef.co/go/tools": true, "golang.org/x/vuln": true}, map[string]bool{}
	for line := range strings.Lines(string(mod)) {
		words := strings.Fields(line)
		if strings.HasPrefix(line, "\t") && len(words) == 2 && strings.HasPrefix(words[1], "v") {
			direct[words[0]] = true
		}
	}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+/[^`]+)` \\|").FindAllSubmatch(page, -1) {
		rows[string(m[1])] = true
	}
	for _, m := range slices.Sorted(maps.Keys(direct)) {
		if !rows[m] {
			t.Errorf("docs/dependencies.md has no row for %s", m)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(rows)) {
		if !direct[m] {
			t.Errorf("docs/dependencies.md has a row for %s, which is no direct dependency of go.mod", m)
		}
	}
}

var (
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	link       = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`^#{1,6} +(.*)$`)
	linkText   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// brokenLinks lists the links of pages that lead nowhere, sorted. Links to other sites are not looked at.
func brokenLinks(t *testing.T, pages []string) []string {
	t.Helper()
	known := map[string]map[string]bool{}
	anchorsOf := func(path string) map[string]bool {
		if a, ok := known[path]; ok {
			return a
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		known[path] = anchors(text)
		return known[path]
	}
	var out []string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range prose(text) {
			for _, m := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
				if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
					continue
				}
				file, anchor, _ := strings.Cut(m[1], "#")
				path := page
				if file != "" {
					path = filepath.Join(filepath.Dir(page), file)
				}
				if _, err := os.Stat(path); err != nil {
					out = append(out, fmt.Sprintf("%s: (%s): no such file", page, m[1]))
				} else if anchor != "" && strings.HasSuffix(path, ".md") && !anchorsOf(path)[anchor] {
					out = append(out, fmt.Sprintf("%s: (%s): no such heading", page, m[1]))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// prose gives the lines of a page that are in no code block.
func prose(text []byte) (out []string) {
	code := false
	for line := range bytes.Lines(text) {
		s := strings.TrimRight(string(line), "\n")
		if strings.HasPrefix(strings.TrimSpace(s), "```") {
			code = !code
			continue
		}
		if !code {
			out = append(out, s)
		}
	}
	return out
}

// anchors are the names of a page's headings, as GitHub makes them.
func anchors(text []byte) map[string]bool {
	out := map[string]bool{}
	for _, line := range prose(text) {
		m := heading.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, linkText.ReplaceAllString(strings.TrimSpace(m[1]), "$1"))
		unique := name
		for i := 1; out[unique]; i++ {
			unique = fmt.Sprintf("%s-%d", name, i)
		}
		out[unique] = true
	}
	return out
}
