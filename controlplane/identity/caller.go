package identity

import "net/http"

// Caller is who makes a request.
type Caller struct {
	// Project is the ID of the project that the caller acts for; empty for none.
	Project string
	// Admin may do everything, in each project. Writer may change what is the project's own;
	// everybody else only reads it.
	Admin, Writer bool
}

// Authenticator tells who makes a request. An *Error is answered as it is.
type Authenticator interface {
	Authenticate(*http.Request) (Caller, error)
}

// Anybody lets everybody in as an administrator that acts for one project.
type Anybody struct{ Project string }

// Authenticate implements Authenticator.
func (a Anybody) Authenticate(*http.Request) (Caller, error) {
	return Caller{Project: a.Project, Admin: true, Writer: true}, nil
}

// Reads tells whether the caller may see what is of a project. What is of a project that nobody
// knows is the administrators'.
func (c Caller) Reads(project string) bool { return c.Admin || project != "" && c.Project == project }

// Writes tells whether the caller may change it.
func (c Caller) Writes(project string) bool { return c.Admin || c.Writer && c.Reads(project) }
