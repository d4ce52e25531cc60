package admin

// Endpoint is a question with the types of its request and its answer.
type Endpoint[Req, Resp any] struct {
	path    string
	changes bool
}

// Path is the URL path.
func (e Endpoint[Req, Resp]) Path() string { return e.path }

// NewEndpoint makes an endpoint; the path starts with /v1/.
func NewEndpoint[Req, Resp any](path string) Endpoint[Req, Resp] {
	return Endpoint[Req, Resp]{path: path}
}

// NewChange makes an endpoint that changes something: a client that gets no answer says whether
// the change was not carried out, or that this is not known.
func NewChange[Req, Resp any](path string) Endpoint[Req, Resp] {
	return Endpoint[Req, Resp]{path: path, changes: true}
}

// Nothing is the request of a question without parameters.
type Nothing struct{}
