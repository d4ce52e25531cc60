package nova

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// Config is what Nova knows. It is also the JSON file of Run.
type Config struct {
	// Secret is metadata_proxy_shared_secret.
	Secret string `json:"secret"`
	// Instances by their id.
	Instances []Instance `json:"instances"`
}

// Fault is how a Nova misbehaves; the zero value does not.
type Fault struct {
	// Delay is before each answer.
	Delay time.Duration
	// Silent never answers: it holds a request until the other side gives up.
	Silent bool
	// Status, if it is not 0, is all that it answers.
	Status int
}

// Request is what was asked, after the checks or before.
type Request struct {
	Method, Path string
	Header       http.Header
	Body         []byte
	// Status is what was answered.
	Status int
}

// maxRequests bounds what is remembered.
const maxRequests = 1 << 14

// Nova is an http.Handler. It may be changed while it serves.
type Nova struct {
	secret string

	mu        sync.Mutex
	instances map[string]Instance
	passwords map[string]string
	fault     Fault
	requests  []Request
}

// New makes a stand-in.
func New(cfg Config) *Nova {
	n := &Nova{secret: cfg.Secret, instances: map[string]Instance{}, passwords: map[string]string{}}
	for _, i := range cfg.Instances {
		n.Put(i)
	}
	return n
}

// Put adds an instance, or replaces the one of its id.
func (n *Nova) Put(i Instance) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.instances[i.ID] = i
}

// Drop forgets an instance.
func (n *Nova) Drop(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.instances, id)
}

// SetFault makes it misbehave from now on.
func (n *Nova) SetFault(f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fault = f
}

// Requests are those since the last call, the oldest first.
func (n *Nova) Requests() []Request {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := n.requests
	n.requests = nil
	return out
}

// ServeHTTP answers one request.
func (n *Nova) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The body of an answer is small, and so are those of all requests.
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		return
	}
	n.mu.Lock()
	fault := n.fault
	n.mu.Unlock()
	if fault.Silent {
		<-r.Context().Done()
		return
	}
	select {
	case <-r.Context().Done():
		return
	case <-time.After(fault.Delay):
	}
	a := answer{status: fault.Status, mime: mimeText}
	if fault.Status == 0 {
		a = n.answer(r, body)
	}
	n.remember(Request{Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Status: a.status})
	w.Header().Set("Content-Type", a.mime)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

func (n *Nova) remember(r Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.requests) < maxRequests {
		n.requests = append(n.requests, r)
	}
}

// answer is one of Nova's.
type answer struct {
	status int
	mime   string
	body   []byte
}

const (
	mimeText   = "text/plain; charset=UTF-8"
	mimeJSON   = "application/json"
	mimeBinary = "application/octet-stream"
)

func text(lines ...string) answer { return found(mimeText, []byte(strings.Join(lines, "\n"))) }

func found(mime string, body []byte) answer {
	return answer{status: http.StatusOK, mime: mime, body: body}
}

func refuse(status int, why string) answer {
	return answer{status: status, mime: "text/html; charset=UTF-8", body: []byte(why + "\n")}
}

var notFound = refuse(http.StatusNotFound, "The resource could not be found.")

// answer is MetadataRequestHandler.__call__ of nova/api/metadata/handler.py.
func (n *Nova) answer(r *http.Request, body []byte) answer {
	if path.Clean("/"+r.URL.Path) == "/" {
		return text(append(slices.Clone(ec2Versions), latest)...)
	}
	id, why := n.instanceOf(r.Header)
	if why.status != 0 {
		return why
	}
	n.mu.Lock()
	i, ok := n.instances[id]
	n.mu.Unlock()
	if !ok || i.Project != joined(r.Header, headerProject) {
		return notFound
	}
	at := strings.Split(strings.Trim(path.Clean("/"+r.URL.Path), "/"), "/")
	if at[0] == "openstack" {
		return n.openstack(i, at[1:], r.Method, body)
	}
	if at[0] == "ec2" {
		at = at[1:]
	}
	return i.ec2(at)
}

// The headers of a metadata proxy.
const (
	headerInstance  = "X-Instance-Id"
	headerProject   = "X-Tenant-Id"
	headerSignature = "X-Instance-Id-Signature"
)

// instanceOf is _handle_instance_id_request, as far as the signature.
func (n *Nova) instanceOf(h http.Header) (string, answer) {
	for _, name := range []string{headerInstance, headerSignature, headerProject} {
		if len(h.Values(name)) == 0 {
			return "", refuse(http.StatusBadRequest, name+" header is missing from request.")
		}
	}
	id := joined(h, headerInstance)
	if !hmac.Equal([]byte(joined(h, headerSignature)), []byte(Sign(n.secret, id))) {
		return "", refuse(http.StatusForbidden, "Invalid proxy request signature.")
	}
	return id, answer{}
}

// joined is a header as webob gives it.
func joined(h http.Header, name string) string { return strings.Join(h.Values(name), ", ") }

// Sign is the signature of an instance's id.
func Sign(secret, id string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(id))
	return hex.EncodeToString(mac.Sum(nil))
}

// As is what guests see through a proxy that takes all of them for one instance.
func (n *Nova) As(id, project string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Set(headerInstance, id)
		r.Header.Set(headerProject, project)
		r.Header.Set(headerSignature, Sign(n.secret, id))
		n.ServeHTTP(w, r)
	})
}
