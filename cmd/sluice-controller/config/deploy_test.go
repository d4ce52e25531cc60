package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// deployment is what is looked at of deploy/kubernetes/controller.yaml.
type deployment struct {
	Kind string            `yaml:"kind"`
	Data map[string]string `yaml:"data"`
	Spec struct {
		Replicas int `yaml:"replicas"`
		Template struct {
			Spec struct {
				Security struct {
					NonRoot bool `yaml:"runAsNonRoot"`
				} `yaml:"securityContext"`
				Containers []struct {
					Args     []string `yaml:"args"`
					Security struct {
						Capabilities struct{ Drop, Add []string } `yaml:"capabilities"`
					} `yaml:"securityContext"`
					Mounts []struct {
						Path string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				} `yaml:"containers"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

// The manifest's configuration is one that the program takes, each file that it names is in a
// directory that the container has, and the pod has no rights.
func TestDeployment(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/kubernetes/controller.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]deployment{}
	for dec := yaml.NewDecoder(bytes.NewReader(b)); ; {
		var d deployment
		err := dec.Decode(&d)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		objects[d.Kind] = d
	}
	file := filepath.Join(t.TempDir(), "controller.yaml")
	if err := os.WriteFile(file, []byte(objects["ConfigMap"].Data["controller.yaml"]), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := objects["Deployment"].Spec.Template.Spec
	if len(pod.Containers) != 1 || objects["Deployment"].Spec.Replicas < 2 {
		t.Fatalf("%+v", objects["Deployment"])
	}
	container := pod.Containers[0]
	if caps := container.Security.Capabilities; !pod.Security.NonRoot || !slices.Equal(caps.Drop, []string{"ALL"}) || len(caps.Add) > 0 {
		t.Errorf("the container has rights: %+v", pod)
	}
	if !slices.Equal(container.Args, []string{"--config", DefaultPath}) {
		t.Errorf("arguments %q", container.Args)
	}
	for _, file := range []string{DefaultPath, c.HTTP.Certificate, c.HTTP.PrivateKey, c.OVN.TLS.Certificate, c.OVN.TLS.PrivateKey, c.OVN.TLS.CACert, c.Auth.Tokens} {
		if !slices.ContainsFunc(container.Mounts, func(m struct {
			Path string `yaml:"mountPath"`
		}) bool {
			return m.Path == filepath.Dir(file)
		}) {
			t.Errorf("%s is in no directory that is mounted", file)
		}
	}
}

// The unit gives no capability.
func TestUnit(t *testing.T) {
	b, err := os.ReadFile("../../../deploy/systemd/sluice-controller.service")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"CapabilityBoundingSet=", "NoNewPrivileges=yes", "User=sluice-controller"} {
		if !strings.Contains(string(b), "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
}
