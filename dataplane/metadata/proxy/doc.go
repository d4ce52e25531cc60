// Package proxy answers the metadata requests of virtual machines: it finds out who
// asks by the connection, never by what a request claims, and passes the request on to
// Nova, signed (neutron's ovn metadata agent and nova/api/metadata/handler.py are the
// two ends of that protocol), or to another Backend.
//
// A request goes through these steps, each of which may answer it:
//
//  1. the connection is counted for its Identity, all of nobody's together, and closed
//     beyond MaxConnections;
//  2. the request line and the header have to arrive within HeaderTimeout and fit into
//     MaxHeader (431);
//  3. a connection without an Identity gets 404, and is counted as Unattributed;
//  4. the identity's token bucket is asked (429 with Retry-After);
//  5. the body is read, MaxBody at most (413), within BodyTimeout (408);
//  6. whatever the guest may not say of itself is taken out of the header;
//  7. the Backend answers.
//
// Nothing of a request or an answer but method, path, status and the identity's names
// is told to anybody: paths of requests name no secrets, queries, bodies and headers may.
//
// A server may leave while guests ask: see Leave. Its sockets, and the connections that
// wait for a request, go on with the next one, in the same process or in another.
package proxy
