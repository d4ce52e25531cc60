package proxy

import "net/http"

// Outcome is what became of a request, for counters.
type Outcome string

// The outcomes.
const (
	// Answered: the backend has answered, with any status but 403.
	Answered Outcome = "answered"
	// Unattributed: nobody's connection.
	Unattributed Outcome = "unattributed"
	// RateLimited: the port asked too often.
	RateLimited Outcome = "rate-limited"
	// TooManyConnections: the port has its maximum, and the next one was closed.
	TooManyConnections Outcome = "too-many-connections"
	// Malformed: no request of HTTP, or one that net/http does not take.
	Malformed Outcome = "malformed"
	// TooLarge: the header is larger than MaxHeader, or the body than MaxBody.
	TooLarge Outcome = "too-large"
	// Slow: the body did not arrive in time.
	Slow Outcome = "slow"
	// Refused: a method, an upgrade or a target that metadata has no use for.
	Refused Outcome = "refused"
	// Forbidden: Nova refuses the signature, or a backend what the port is known by.
	Forbidden Outcome = "forbidden"
	// Unreachable: no server of the backend took the connection.
	Unreachable Outcome = "unreachable"
	// TimedOut: the backend did not answer in time.
	TimedOut Outcome = "timed-out"
	// Broken: the backend's answer was none of HTTP, or the guest has gone.
	Broken Outcome = "broken"
)

// Outcomes lists them with what they mean.
func Outcomes() map[Outcome]string {
	return map[Outcome]string{
		Answered: "The backend has answered, with any status but 403.", Unattributed: "The connection is of no known port, or its port has no instance: 404.",
		RateLimited: "The port asked too often, or sends too many bodies at a time: 429.", TooManyConnections: "The port has as many connections as it may, and the next one was closed.", TooLarge: "The header or the body is larger than a request's may be: 431, 413.", Malformed: "The request is not HTTP: 400.", Slow: "The body did not arrive in time: 408.",
		Refused: "CONNECT, TRACE or an upgrade, which metadata does not support: 405; a target that is no path: 400.", Unreachable: "No server of the backend accepted the connection: 503.",
		Forbidden: "The backend refuses: Nova by 403, where the shared secrets differ; files and template where what OVN has of the port does not name its own, by 403 or 404.",
		TimedOut:  "The backend did not answer in time: 504.", Broken: "The backend's answer was not HTTP: 502; or the VM closed the connection.",
	}
}

// answer is a text for a guest, whose tools print it.
func answer(w http.ResponseWriter, status int, text string) {
	http.Error(w, text, status)
}
