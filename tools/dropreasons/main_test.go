package main

import (
	"bytes"
	"os"
	"testing"
)

// What is derived from the list is up to date.
func TestCurrent(t *testing.T) {
	text, err := os.ReadFile("../../pkg/drop/reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][]byte{"../../bpf/lib/drop_reasons.h": cHeader(list), "../../docs/reference/drop-reasons.md": page(list)} {
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not current: run go generate ./pkg/drop (%v)", path, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"- {name: A, explain: x, act: y}", "- {name: a, explain: x}", "- {name: a, explain: x, act: y, more: z}",
		"- {name: a, explain: x, act: y}\n- {name: a, explain: x, act: y}", "{",
	} {
		if _, err := parse([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
