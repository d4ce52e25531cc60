package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
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

// manifest is what is looked at of the DaemonSet.
type manifest struct {
	Kind string `yaml:"kind"`
	Spec struct {
		Template struct {
			Spec struct {
				HostNetwork bool        `yaml:"hostNetwork"`
				Containers  []container `yaml:"containers"`
				Volumes     []struct {
					Name string `yaml:"name"`
				} `yaml:"volumes"`
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type container struct {
	Name     string   `yaml:"name"`
	Command  []string `yaml:"command"`
	Security struct {
		Privileged   bool `yaml:"privileged"`
		Capabilities struct {
			Add []string `yaml:"add"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
	Mounts []mount `yaml:"volumeMounts"`
}

type mount struct {
	Name        string `yaml:"name"`
	Path        string `yaml:"mountPath"`
	ReadOnly    bool   `yaml:"readOnly"`
	Propagation string `yaml:"mountPropagation"`
}

func (c container) mount(path string) mount {
	i := slices.IndexFunc(c.Mounts, func(m mount) bool { return m.Path == path })
	if i < 0 {
		return mount{}
	}
	return c.Mounts[i]
}

func daemonSet(t *testing.T) manifest {
	t.Helper()
	b, err := os.ReadFile("../../deploy/kubernetes/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	for {
		var m manifest
		if err := dec.Decode(&m); err != nil {
			t.Fatalf("there is no DaemonSet: %v", err)
		}
		if m.Kind == "DaemonSet" {
			return m
		}
	}
}

// The metadata proxy is a container of its own, with what the unit gives it and no more,
// and the directories that it shares with sluiced.
func TestMetadataContainer(t *testing.T) {
	pod := daemonSet(t).Spec.Template.Spec
	byName := map[string]container{}
	for _, c := range pod.Containers {
		byName[c.Name] = c
		for _, m := range c.Mounts {
			if !slices.ContainsFunc(pod.Volumes, func(v struct {
				Name string `yaml:"name"`
			}) bool {
				return v.Name == m.Name
			}) {
				t.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
	}
	daemon, proxy := byName["sluiced"], byName["metadata"]
	if !slices.Equal(proxy.Command, []string{"/usr/sbin/sluiced", "metadata"}) || proxy.Security.Privileged || !pod.HostNetwork {
		t.Errorf("%+v", proxy)
	}
	def := Default()
	for path, propagation := range map[string]string{"/run/netns": "HostToContainer", def.StateDir: "", "/run/sluice": "", "/sys/fs/bpf": "HostToContainer", "/etc/sluice": ""} {
		m := proxy.mount(path)
		if m.Name == "" || m.Propagation != propagation || m.Name != daemon.mount(path).Name {
			t.Errorf("%s is %+v, and %+v of sluiced", path, m, daemon.mount(path))
		}
	}
	if m := daemon.mount("/run/netns"); m.Propagation != "Bidirectional" {
		t.Errorf("namespaces that sluiced makes stay in its container: %+v", m)
	}
	unit := readUnit(t, "sluiced-metadata")
	var rights []string
	for _, name := range proxy.Security.Capabilities.Add {
		rights = append(rights, "CAP_"+name)
	}
	if got := strings.Fields(unit["CapabilityBoundingSet"]); !slices.Equal(got, rights) {
		t.Errorf("the unit gives %v, and the container %v", got, rights)
	}
}

// readUnit has the last value of each key.
func readUnit(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile("../../deploy/systemd/" + name + ".service")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			out[key] = value
		}
	}
	return out
}

// The two units share directories and nothing else.
func TestMetadataUnit(t *testing.T) {
	daemon, proxy := readUnit(t, "sluiced"), readUnit(t, "sluiced-metadata")
	for key, want := range map[string]string{
		"Type": "notify", "NotifyAccess": "main", "ExecStart": "/usr/sbin/sluiced metadata", "Restart": "always", "FileDescriptorStoreMax": "8192", "RestrictNamespaces": "net",
		"ExecReload": "/bin/kill -HUP $MAINPID",
	} {
		if proxy[key] != want {
			t.Errorf("%s=%s, want %s", key, proxy[key], want)
		}
	}
	for _, key := range []string{"RuntimeDirectory", "StateDirectory", "ConfigurationDirectory"} {
		if proxy[key] != daemon[key] {
			t.Errorf("%s is %q, and %q of sluiced", key, proxy[key], daemon[key])
		}
	}
	// What one unit leaves is in use by the other.
	if proxy["RuntimeDirectoryPreserve"] != "yes" || daemon["RuntimeDirectoryPreserve"] != "yes" {
		t.Error("a unit that ends takes the other's socket away")
	}
	for _, key := range []string{"BindsTo", "Requires", "PartOf", "PropagatesStopTo"} {
		if proxy[key] != "" || daemon[key] != "" {
			t.Errorf("%s binds the units", key)
		}
	}
}

// capabilitiesOf are the capabilities that a file's comments list, with what each is for, and their
// order.
func capabilitiesOf(t *testing.T, path string) (uses map[string]string, names []string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	uses = map[string]string{}
	for line := range strings.Lines(string(b)) {
		words, listed := strings.CutPrefix(strings.TrimSpace(line), "#   ")
		if !listed {
			continue
		}
		if name, use, found := strings.Cut(words, " "); found && strings.HasPrefix(name, "CAP_") {
			names, words = append(names, name), use
		}
		if len(names) > 0 {
			uses[names[len(names)-1]] += " " + strings.Join(strings.Fields(words), " ")
		}
	}
	return uses, names
}

// The unit gives the capabilities that it explains, and the DaemonSet explains the same ones alike.
func TestCapabilitiesAreExplained(t *testing.T) {
	uses, names := capabilitiesOf(t, "../../deploy/systemd/sluiced.service")
	if got := strings.Fields(readUnit(t, "sluiced")["CapabilityBoundingSet"]); len(got) == 0 || !slices.Equal(got, names) {
		t.Errorf("the unit gives %v, and explains %v", got, names)
	}
	others, order := capabilitiesOf(t, "../../deploy/kubernetes/daemonset.yaml")
	if !slices.Equal(order, names) {
		t.Errorf("the DaemonSet explains %v, the unit %v", order, names)
	}
	for _, name := range names {
		if uses[name] != others[name] || len(uses[name]) < 20 {
			t.Errorf("%s: the unit says%s; the DaemonSet%s", name, uses[name], others[name])
		}
	}
}
