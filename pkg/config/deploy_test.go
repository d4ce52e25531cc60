package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// The configuration that the Kubernetes manifest carries is one that sluiced
// takes.
func TestKubernetesManifest(t *testing.T) {
	b, err := os.ReadFile("../../deploy/kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	checked := 0
	for {
		var object struct {
			Kind string            `yaml:"kind"`
			Data map[string]string `yaml:"data"`
		}
		err := dec.Decode(&object)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := object.Data["sluiced.yaml"]; ok && object.Kind == "ConfigMap" {
			if _, err := Parse("daemonset.yaml", []byte(text)); err != nil {
				t.Error(err)
			}
			checked++
		}
	}
	if checked != 1 {
		t.Errorf("%d configurations in the manifest", checked)
	}
}
