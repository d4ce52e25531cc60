package main

import (
	"bytes"
	"image"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/config"
	"github.com/ovn-sluice/sluice/pkg/configfile"
)

// other is the file of another program, which has a section of another package.
type other struct {
	// Name is what it is called.
	Name string `yaml:"name"`
	// HTTP is its listener.
	HTTP config.HTTP `yaml:"http"`
	// Peers are the ones that it asks.
	Peers []otherPeer `yaml:"peers"`
}

// otherPeer is one that is asked.
type otherPeer struct {
	// Wait bounds an answer.
	Wait configfile.Duration `yaml:"wait"`
}

func (p *otherPeer) SetDefaults() { p.Wait = configfile.Seconds(7) }

type bare struct {
	Silent string `yaml:"silent"`
	// Keyless has a comment.
	Keyless string
}

func TestPageOfAnyConfiguration(t *testing.T) {
	var page bytes.Buffer
	if err := configPage(&page, "# Intro\n", other{Name: "x", HTTP: config.HTTP{Listen: "[::1]:1"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Intro\n\n## Top level\n\n| key | type | default | meaning |\n",
		"| `name` | text | `x` | What it is called. |\n",
		"| `http` | see below |  | Its listener. |\n",
		"\n## http\n\nThe listener of metrics and health.\n\n",
		"| `listen` | text | `[::1]:1` | ADDRESS:PORT of /metrics",
		"| `peers` | list, see below |  | The ones that it asks. |\n",
		"\n## peers[]\n\nOne that is asked.\n\n",
		"| `wait` | duration | `7s` | `wait` bounds an answer. |\n",
	} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
	err := configPage(&page, "", bare{})
	if err == nil || !strings.Contains(err.Error(), "bare.Silent of") || !strings.Contains(err.Error(), "bare.Keyless has no yaml tag") {
		t.Errorf("a file without comments and keys: %v", err)
	}
	if err := configPage(&page, "", image.Point{}); err == nil {
		t.Error("the comments of another module were read")
	}
	if err := run([]string{"config", "none", "/nowhere/none.md"}); err == nil || !strings.Contains(err.Error(), "no configuration of none") {
		t.Error(err)
	}
}
