package main

import (
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// rooms are the packages below cmd/sluiced. ARCHITECTURE.md has who imports whom.
const rooms = "cmd/sluiced/internal/"

// everywhere are the rooms that the picture leaves out of the lines of others.
var everywhere = []string{"settings", "plane"}

// picture reads the lines "room -> room, room" of a page.
func picture(page string) map[string][]string {
	out := map[string][]string{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z/]+) +-> (.+)$`).FindAllStringSubmatch(page, -1) {
		out[m[1]] = strings.Split(m[2], ", ")
	}
	return out
}

// checkPicture compares who imports whom among the rooms with the page.
func checkPicture(page string, all []pkg, r *report) {
	drawn := picture(page)
	if len(drawn) == 0 {
		r.problems = append(r.problems, "ARCHITECTURE.md: no picture of who imports whom")
	}
	edges := roomImports(all, r)
	for _, room := range slices.Sorted(maps.Keys(edges)) {
		imports, want := slices.Sorted(maps.Keys(edges[room])), slices.Sorted(slices.Values(drawn[room]))
		if !slices.Equal(imports, want) {
			r.problems = append(r.problems, fmt.Sprintf("ARCHITECTURE.md: %s imports %v, and the picture says %v", room, imports, want))
		}
		for _, to := range imports {
			if parent := strings.HasPrefix(room, to+"/"); parent && to != "taps" {
				r.problems = append(r.problems, fmt.Sprintf("%s imports its parent: what it asks of that is an interface of its own", room))
			}
		}
		delete(drawn, room)
	}
	for _, room := range slices.Sorted(maps.Keys(drawn)) {
		r.problems = append(r.problems, fmt.Sprintf("ARCHITECTURE.md: the picture has %s, which imports no other", room))
	}
}

// checkListed looks whether the table of packages has each, or one that it is below.
func checkListed(page string, all []pkg, r *report) {
	missing := map[string]bool{}
	for _, p := range all {
		at := p.Path
		for at != "." && !strings.Contains(page, "`"+at+"`") {
			at = path.Dir(at)
		}
		missing[p.Path] = p.Path != "." && at == "."
	}
	for _, p := range slices.Sorted(maps.Keys(missing)) {
		if missing[p] {
			r.problems = append(r.problems, fmt.Sprintf("ARCHITECTURE.md: no line of the table has %s", p))
		}
	}
}

// roomImports are the rooms that each room imports in any build.
func roomImports(all []pkg, r *report) map[string]map[string]bool {
	edges := map[string]map[string]bool{}
	for _, p := range all {
		room, inside := strings.CutPrefix(p.Path, rooms)
		switch {
		case inside:
		case p.Path == "cmd/sluiced":
			room = "main"
		case strings.HasPrefix(p.Path, "cmd/sluiced/"):
			r.problems = append(r.problems, fmt.Sprintf("%s: parts of sluiced are below %s", p.Path, rooms))
			continue
		default:
			continue
		}
		if edges[room] == nil {
			edges[room] = map[string]bool{}
		}
		for _, imp := range p.Imports {
			if to, is := strings.CutPrefix(imp, module+rooms); is && !slices.Contains(everywhere, to) {
				edges[room][to] = true
			}
		}
	}
	return edges
}

// checkFollowed looks whether the functions of "A change, followed through" are there.
func checkFollowed(root, page string, r *report) error {
	_, text, _ := strings.Cut(page, "## A change, followed through")
	found := regexp.MustCompile("`([a-z/]+)\\.([A-Za-z]+)\\.([A-Za-z]+)`").FindAllStringSubmatch(text, -1)
	if len(found) == 0 {
		r.problems = append(r.problems, "ARCHITECTURE.md: no functions in \"A change, followed through\"")
	}
	for _, m := range found {
		files, err := filepath.Glob(filepath.Join(root, m[1], "*.go"))
		if err != nil {
			return err
		}
		method := regexp.MustCompile(`(?m)^func \(\w+ \*?` + m[2] + `(\[[^\]]*\])?\) ` + m[3] + `\(`)
		there := false
		for _, f := range files {
			src, err := os.ReadFile(f)
			if err != nil {
				return err
			}
			there = there || method.Match(src)
		}
		if !there {
			r.problems = append(r.problems, fmt.Sprintf("ARCHITECTURE.md: %s has no method %s of %s", m[1], m[3], m[2]))
		}
	}
	return nil
}

// checkArchitecture compares ARCHITECTURE.md with the code.
func checkArchitecture(root string, all []pkg, r *report) error {
	page, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		return err
	}
	checkPicture(string(page), all, r)
	checkListed(string(page), all, r)
	return checkFollowed(root, string(page), r)
}
