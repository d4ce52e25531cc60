package proxy

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// TemplateURL is the URL of a Template, in its parts.
type TemplateURL struct {
	// Scheme is http or https, and Host has its port.
	Scheme, Host string
	// Path begins with a slash, ends without one, and has placeholders in braces.
	Path string
}

// placeholders are the words that a template may have in braces.
var placeholders = []string{"instance", "project", "network", "port", "address"}

// Has tells whether a placeholder is in the path.
func (t TemplateURL) Has(placeholder string) bool {
	return strings.Contains(t.Path, "{"+placeholder+"}")
}

// CheckTemplate tells what is wrong with the URL of a Template.
func CheckTemplate(text string) error {
	_, err := ParseTemplate(text)
	return err
}

// ParseTemplate reads a URL such as http://192.0.2.1:8080/nodes/{project}/{instance}.
func ParseTemplate(text string) (TemplateURL, error) {
	// Braces are no characters of a URL's path; it is looked at without them.
	u, err := url.Parse(strings.NewReplacer("{", "", "}", "").Replace(text))
	switch {
	case err != nil:
		return TemplateURL{}, errors.New("it is no URL; write one like http://192.0.2.1:8080/{project}/{instance}")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.Hostname() == "":
		return TemplateURL{}, errors.New("it has to begin with http:// or https:// and a host")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.User != nil:
		return TemplateURL{}, errors.New("remove the query, the fragment or the user name")
	}
	_, rest, _ := strings.Cut(text, "://")
	host, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(host, "{}") {
		return TemplateURL{}, errors.New("the host cannot depend on the instance")
	}
	if err := placeholdersIn(path); err != nil {
		return TemplateURL{}, err
	}
	if u.Port() == "" {
		host = strings.TrimSuffix(host, ":") + map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	}
	return TemplateURL{Scheme: u.Scheme, Host: host, Path: "/" + strings.TrimSuffix(path, "/")}, nil
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
		if !slices.Contains(placeholders, word) {
			return fmt.Errorf("{%s} is none of %s", word, strings.Join(placeholders, ", "))
		}
		path = after
	}
	return nil
}
