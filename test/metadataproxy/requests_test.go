package metadataproxy

import "strings"

// rawRequest is what a client sends, and what haproxy answers; sluice is what Sluice answers
// where that is another thing. The client closes its sending side behind it, unless the last
// request asks to close the connection: haproxy may then forget those before the last.
type rawRequest struct{ name, raw, haproxy, sluice string }

const (
	get     = "GET / HTTP/1.1\r\nHost: a\r\n"
	post    = "POST / HTTP/1.1\r\nHost: a\r\n"
	closes  = get + "Connection: close\r\n\r\n"
	chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
)

var rawRequests = []rawRequest{
	{"HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", "200 GET / 0", ""},
	{"HTTP/1.0 with Host", "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "200 GET / 0", ""},
	{"HTTP/1.0, an answer other than 200", "GET /status/404 HTTP/1.0\r\n\r\n", "404", ""},
	{"HTTP/1.0 with keep-alive", "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "200 GET / 0", ""},
	{"HTTP/1.1", get + "\r\n", "200 GET / 0", ""},
	{"HTTP/1.1 that closes", get + "Connection: close\r\n\r\n", "200 GET / 0", ""},
	{"an answer 403", "GET /status/403 HTTP/1.1\r\nHost: a\r\n\r\n", "403", ""},
	{"an answer 500", "GET /status/500 HTTP/1.1\r\nHost: a\r\n\r\n", "500", ""},
	{"an answer 503", "GET /status/503 HTTP/1.1\r\nHost: a\r\n\r\n", "503", ""},
	{"an answer 302", "GET /status/302 HTTP/1.1\r\nHost: a\r\n\r\n", "302", ""},
	{"an answer 204", "GET /status/204 HTTP/1.1\r\nHost: a\r\n\r\n", "204", ""},
	{"an answer 304", "GET /status/304 HTTP/1.1\r\nHost: a\r\n\r\n", "304", ""},
	{"two requests at once", get + "\r\n" + closes, "200 GET / 0, 200 GET / 0", ""},
	{"three requests at once", get + "\r\nGET /status/404 HTTP/1.1\r\nHost: a\r\n\r\n" + closes, "200 GET / 0, 404, 200 GET / 0", ""},
	{"HEAD", "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", "200", ""},
	{"PUT without a body", "PUT /latest/api/token HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "200 PUT /latest/api/token 0", ""},
	{"DELETE", "DELETE / HTTP/1.1\r\nHost: a\r\n\r\n", "200 DELETE / 0", ""},
	{"OPTIONS of a path", "OPTIONS / HTTP/1.1\r\nHost: a\r\n\r\n", "200 OPTIONS / 0", ""},
	{"OPTIONS of *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "200", "400"},
	{"TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", "200 TRACE / 0", "405"},
	{"CONNECT", "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", "200 CONNECT  0", "405"},
	{"a method of its own", "FETCH / HTTP/1.1\r\nHost: a\r\n\r\n", "200 FETCH / 0", ""},
	{"a method in small letters", "get / HTTP/1.1\r\nHost: a\r\n\r\n", "200 get / 0", ""},
	{"a method that is none", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "400", ""},
	{"Upgrade: h2c", get + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", "200 GET / 0", "405"},
	{"Upgrade: websocket", get + "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", "400", "405"},
	{"HTTP/2 at once", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "closed", "400"},
	{"HTTP/2.0 in words", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "200 GET / 0", "505"},
	{"HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", "200 GET / 0", ""},
	{"HTTP/0.9", "GET /\r\n", "400", ""},
	{"TLS", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", "400", ""},
	{"words", "hello\r\n\r\n", "400", ""},
	{"nothing", "", "400", "closed"},
	{"an empty line", "\r\n", "400", ""},
	{"an empty line before", "\r\n" + get + "\r\n", "200 GET / 0", "400"},
	{"a header that does not end", get, "400", ""},
	{"line ends without CR", "GET / HTTP/1.1\nHost: a\n\n", "200 GET / 0", ""},
	{"no Host", "GET / HTTP/1.1\r\n\r\n", "400", ""},
	{"two Hosts", get + "Host: b\r\n\r\n", "400", ""},
	{"a Host that is none", "GET / HTTP/1.1\r\nHost: a b\r\n\r\n", "400", ""},
	{"a space before the colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400", ""},
	{"a line that is folded", get + "X: a\r\n b\r\n\r\n", "200 GET / 0", ""},
	{"a header without a colon", get + "Nothing\r\n\r\n", "400", ""},
	{"a header with NUL", get + "X: a\x00b\r\n\r\n", "400", ""},
	{"a path with a space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400", ""},
	{"a path with NUL", "GET /a\x00b HTTP/1.1\r\nHost: a\r\n\r\n", "400", ""},
	{"a path that leads upwards", "GET /a/../b HTTP/1.1\r\nHost: a\r\n\r\n", "200 GET /a/../b 0", ""},
	{"a whole URL", "GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", "400", "200 GET /x 0"},
	{"a target without a slash", "GET x HTTP/1.1\r\nHost: a\r\n\r\n", "400", ""},
	{"a header of 20 kB", get + "X: " + strings.Repeat("a", 20000) + "\r\n\r\n", "400", "431"},
	{"POST", post + "Content-Length: 3\r\n\r\nabc", "200 POST / 3", ""},
	{"POST without a length", post + "\r\n", "200 POST / 0", ""},
	{"POST with Expect: 100-continue", post + "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", "200 POST / 3", ""},
	{"Expect of something else", post + "Expect: wonders\r\nContent-Length: 3\r\n\r\nabc", "417", ""},
	{"POST that breaks off", post + "Content-Length: 5\r\n\r\nabc", "closed", "400"},
	{"a length that is none", post + "Content-Length: x\r\n\r\nabc", "400", ""},
	{"POST in chunks", chunked + "3\r\nabc\r\n0\r\n\r\n", "200 POST / 3", ""},
	{"a chunk's length that is none", chunked + "zz\r\n", "400", ""},
	{"chunks and a length", post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", "200 POST / 3", ""},
	{"Transfer-Encoding: gzip", post + "Transfer-Encoding: gzip\r\n\r\nabc", "400", "501"},
}
