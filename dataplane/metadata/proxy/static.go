package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// Static answers from files, for clouds without Nova. Each instance has a directory of
// its own, named by its id:
//
//	meta_data.json      required: what OpenStack's metadata has (nova/api/metadata/base.py);
//	                    its project_id has to be the port's project
//	user_data           what the EC2 layout calls user-data
//	vendor_data.json, vendor_data2.json, network_data.json
//	content/            files that meta_data.json names by content_path
//
// A link to a file that instances share, in the directory above, is followed.
//
// They are served in OpenStack's layout (/openstack/VERSION/…) and in EC2's
// (/VERSION/meta-data/…), which cloud-init reads one after the other. Files are read
// with each request, and nothing outside of the directory is.
type Static struct {
	root  *os.Root
	log   *slog.Logger
	limit loglimit.Limit
}

// NewStatic opens the directory that has those of the instances.
func NewStatic(dir string, log *slog.Logger) (*Static, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("metadata documents: %w", err)
	}
	return &Static{root: root, log: log}, nil
}

// Close lets go of the directory.
func (s *Static) Close() error { return s.root.Close() }

// The versions of both layouts: a guest asks for the newest that it knows.
var (
	openstackVersions = []string{"2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27", "2020-10-14", "latest"}
	ec2Versions       = []string{"1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01", "2009-04-04", "latest"}
	// documents are the files of OpenStack's layout.
	documents = []string{"meta_data.json", "network_data.json", "user_data", "vendor_data.json", "vendor_data2.json"}
)

var (
	errNoDocument = errors.New("there is no such document")
	// errNotIts: the instance is another project's than the port, as far as is known.
	errNotIts = errors.New("project_id of meta_data.json is not the port's project")
)

// ServeMetadata implements Backend.
func (s *Static) ServeMetadata(w http.ResponseWriter, r *http.Request, id Identity) Outcome {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		answer(w, http.StatusMethodNotAllowed, "These documents can be read only.")
		return Answered
	}
	if err := place("instance", id.Instance); err != nil {
		s.say(slog.LevelWarn, "unnamed", id, "a port is not answered: its instance names no directory", err)
		answer(w, http.StatusForbidden, "Metadata is refused: "+err.Error()+".")
		return Forbidden
	}
	text, err := s.document(id, strings.Split(strings.Trim(path.Clean("/"+r.URL.Path), "/"), "/"))
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNoDocument):
		answer(w, http.StatusNotFound, "There is no such document.")
	case errors.Is(err, errNotIts):
		s.say(slog.LevelWarn, "foreign", id, "a port is not answered: its instance is not of its project", err)
		answer(w, http.StatusNotFound, "There is no such document.") // nor is told that there is one
		return Forbidden
	case err != nil:
		s.say(slog.LevelError, "unreadable", id, "metadata documents of an instance cannot be read", err)
		answer(w, http.StatusInternalServerError, "The document cannot be read.")
	default:
		kind := "text/plain; charset=UTF-8"
		if strings.HasSuffix(r.URL.Path, ".json") {
			kind = "application/json"
		} else if strings.HasSuffix(r.URL.Path, "/user_data") || strings.HasSuffix(r.URL.Path, "/user-data") {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text) // the guest may have gone
	}
	return Answered
}

func (s *Static) say(level slog.Level, event string, id Identity, text string, err error) {
	if ok, skipped := s.limit.Allow(event, id.Port+" "+id.Instance, time.Now()); ok {
		s.log.Log(context.Background(), level, text, "port", id.Port, "instance", id.Instance, "project", id.Project, "error", err, "skipped", skipped)
	}
}

// document is what a path names; "" is the root of both layouts. These roots are all
// instances' alike.
func (s *Static) document(id Identity, at []string) ([]byte, error) {
	if at[0] == "" {
		return lines(append(slices.Clone(ec2Versions), "openstack")), nil
	}
	if at[0] == "openstack" && len(at) == 1 {
		return lines(openstackVersions), nil
	}
	if at[0] != "openstack" && !slices.Contains(ec2Versions, at[0]) {
		return nil, errNoDocument
	}
	if err := s.isIts(id); err != nil {
		return nil, err
	}
	if at[0] == "openstack" {
		return s.openstack(id.Instance, at[1:])
	}
	return s.ec2(id.Instance, at[1:])
}

// isIts tells whether an instance is of a port's project. Who owns a port may write which
// instance it is, but not the project; where nobody has one, nobody compares.
func (s *Static) isIts(id Identity) error {
	text, err := s.read(id.Instance, "meta_data.json")
	if errors.Is(err, fs.ErrNotExist) && id.Project == "" {
		return nil
	}
	if err != nil {
		return err
	}
	var m instanceData
	if err := json.Unmarshal(text, &m); err != nil {
		return fmt.Errorf("meta_data.json: %w", err)
	}
	if m.Project != id.Project {
		return fmt.Errorf("%w: it is %q", errNotIts, m.Project)
	}
	return nil
}

func (s *Static) openstack(instance string, at []string) ([]byte, error) {
	switch {
	case at[0] == "content" && len(at) == 2:
		return s.read(instance, path.Join("content", at[1]))
	case !slices.Contains(openstackVersions, at[0]) || len(at) > 2:
		return nil, errNoDocument
	case len(at) == 2 && slices.Contains(documents, at[1]):
		return s.read(instance, at[1])
	case len(at) == 2:
		return nil, errNoDocument
	}
	var there []string
	for _, d := range documents {
		if _, err := s.root.Stat(path.Join(instance, d)); err == nil {
			there = append(there, d)
		}
	}
	if len(there) == 0 {
		return nil, errNoDocument
	}
	return lines(there), nil
}

func (s *Static) ec2(instance string, at []string) ([]byte, error) {
	switch {
	case len(at) == 0:
		return lines([]string{"meta-data/", "user-data"}), nil
	case at[0] == "user-data" && len(at) == 1:
		return s.read(instance, "user_data")
	case at[0] != "meta-data":
		return nil, errNoDocument
	}
	text, err := s.read(instance, "meta_data.json")
	if err != nil {
		return nil, err
	}
	var m instanceData
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("meta_data.json: %w", err)
	}
	return m.ec2().find(at[1:])
}

// maxDocument bounds what is read for one request, in bytes.
const maxDocument = 16 << 20

func (s *Static) read(instance, name string) ([]byte, error) {
	f, err := s.root.Open(path.Join(instance, name))
	if isNoName(err) {
		return nil, errNoDocument
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return nil, errors.Join(err, errNoDocument)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if err == nil && len(text) > maxDocument {
		err = fmt.Errorf("%s has more than %d bytes", name, maxDocument)
	}
	return text, err
}

// isNoName tells whether no file can have the name, which the guest has chosen.
func isNoName(err error) bool {
	return errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTDIR)
}

func lines(words []string) []byte { return []byte(strings.Join(words, "\n")) }

// instanceData are the keys of OpenStack's meta_data.json that EC2's layout has too.
type instanceData struct {
	UUID             string            `json:"uuid"`
	Project          string            `json:"project_id"`
	Hostname         string            `json:"hostname"`
	LaunchIndex      int               `json:"launch_index"`
	AvailabilityZone string            `json:"availability_zone"`
	PublicKeys       map[string]string `json:"public_keys"`
	// EC2 has more of its keys, or others: instance-id, local-ipv4, instance-type …
	EC2 map[string]string `json:"ec2"`
}

// tree is a directory of EC2's layout: texts, and trees. An entry's second name is what
// its listing shows, as "0=key" of a public key.
type tree map[string]any

func (m instanceData) ec2() tree {
	t := tree{"ami-launch-index": strconv.Itoa(m.LaunchIndex)}
	set := func(name, value string) {
		if value != "" {
			t[name] = value
		}
	}
	set("instance-id", m.UUID)
	set("hostname", m.Hostname)
	set("local-hostname", m.Hostname)
	set("public-hostname", m.Hostname)
	if m.AvailabilityZone != "" {
		t["placement"] = tree{"availability-zone": m.AvailabilityZone}
	}
	keys := tree{}
	names := make([]string, 0, len(m.PublicKeys))
	for name := range m.PublicKeys {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		keys[strconv.Itoa(i)] = named{name, tree{"openssh-key": m.PublicKeys[name]}}
	}
	if len(keys) > 0 {
		t["public-keys"] = keys
	}
	for name, value := range m.EC2 {
		set(name, value)
	}
	return t
}

// named is a tree that its parent lists with a name behind its number.
type named struct {
	name string
	tree tree
}

func (t tree) find(at []string) ([]byte, error) {
	if len(at) == 0 {
		var out []string
		for name, v := range t {
			switch v := v.(type) {
			case tree:
				name += "/"
			case named:
				name += "=" + v.name
			}
			out = append(out, name)
		}
		slices.Sort(out)
		return lines(out), nil
	}
	switch v := t[at[0]].(type) {
	case string:
		if len(at) == 1 {
			return []byte(v), nil
		}
	case tree:
		return v.find(at[1:])
	case named:
		return v.tree.find(at[1:])
	}
	return nil, errNoDocument
}
