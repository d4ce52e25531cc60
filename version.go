// Package sluice knows the version of its programs.
//
// The number is the content of the file VERSION. The commit is known to the linker in tools/build.sh, to git archive in
// a source archive, and to the go command in a plain "go build" of a checkout.
package sluice

import (
	"cmp"
	_ "embed"
	"runtime/debug"
	"strings"
)

//go:embed VERSION
var number string

// commit is set by the linker. It is printed as it is.
var commit string

// archived is the commit of a source archive: git archive replaces the text between the dollar signs (.gitattributes).
const archived = "$Format:%H$"

// dirty marks a build of a checkout with changes, as git describe does.
const dirty = "-dirty"

// VersionLine is what --version prints: cobra's template.
const VersionLine = "{{.Name}} {{.Version}}\n"

// Version is the number, and the commit where it is known: "0.1.0-dev (5cce9c1c)", "0.1.0-dev (5cce9c1c-dirty)".
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return join(number, cmp.Or(commit, fromArchive(archived), fromBuild(info)))
}

func join(number, commit string) string {
	number = strings.TrimSpace(number)
	if commit == "" {
		return number
	}
	return number + " (" + commit + ")"
}

// fromArchive is "" outside an archive.
func fromArchive(text string) string {
	if strings.HasPrefix(text, "$") {
		return ""
	}
	return short(text)
}

// fromBuild is "" of a build without a checkout, and of a test.
func fromBuild(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := short(settings["vcs.revision"])
	if revision != "" && settings["vcs.modified"] == "true" {
		revision += dirty
	}
	return revision
}

// short is the first eight digits of a commit.
func short(commit string) string { return commit[:min(8, len(commit))] }
