package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// MetadataTemplate is the URL of metadata's backend template, in its parts.
type MetadataTemplate struct {
	// Scheme is http or https, and Host has its port.
	Scheme, Host string
	// Path begins with a slash, ends without one, and has placeholders in braces.
	Path string
}

// MetadataPlaceholders are the words that a template may have in braces.
func MetadataPlaceholders() []string {
	return []string{"instance", "project", "network", "port", "address"}
}

// Has tells whether a placeholder is in the path.
func (t MetadataTemplate) Has(placeholder string) bool {
	return strings.Contains(t.Path, "{"+placeholder+"}")
}

// ParseMetadataTemplate reads a URL such as http://192.0.2.1:8080/nodes/{project}/{instance}.
func ParseMetadataTemplate(text string) (MetadataTemplate, error) {
	// Braces are no characters of a URL's path; it is looked at without them.
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(text))
	switch {
	case err != nil:
		return MetadataTemplate{}, errors.New("it is no URL; write one like http://192.0.2.1:8080/{project}/{instance}")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return MetadataTemplate{}, errors.New("it has to begin with http:// or https:// and a host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil:
		return MetadataTemplate{}, errors.New("a query, a fragment or a user name has no place in it")
	}
	_, rest, _ := strings.Cut(text, "://")
	host, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(host, "{}") {
		return MetadataTemplate{}, errors.New("the host cannot depend on the instance")
	}
	if err := placeholdersIn(path); err != nil {
		return MetadataTemplate{}, err
	}
	if u.Port() == "" {
		host = strings.TrimSuffix(host, ":") + map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	return MetadataTemplate{Scheme: u.Scheme, Host: host, Path: "/" + strings.TrimSuffix(path, "/")}, nil
}

func placeholdersIn(path string) error {
	for path != "" {
		before, rest, opens := strings.Cut(path, "{")
		if strings.Contains(before, "}") {
			return errors.New("a brace has no other end")
		}
		if !opens {
			return nil
		}
		word, after, closes := strings.Cut(rest, "}")
		if !closes {
			return errors.New("a brace has no other end")
		}
		if !slices.Contains(MetadataPlaceholders(), word) {
			return fmt.Errorf("{%s} is none of %s", word, strings.Join(MetadataPlaceholders(), ", "))
		}
		path = after
	}
	return nil
}
