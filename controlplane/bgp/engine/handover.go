package engine

import (
	"log/slog"
	"net"
	"reflect"
	"sync/atomic"

	"github.com/osrg/gobgp/v3/pkg/server"

	"github.com/ovn-sluice/sluice/pkg/loglimit"
)

// New makes a server that does not serve yet, and the queue of the connections that it takes. A nil
// queue: this version of the server has none, and dials. leaving: this node ends its sessions, and
// what the server says of that is no warning.
func New(log *slog.Logger, handles *Handles, leaving *atomic.Bool) (srv *server.BgpServer, accepted chan<- *net.TCPConn) {
	srv = server.NewBgpServer(server.LoggerOption(serverLog{log: log, handles: handles, limit: &loglimit.Limit{}, leaving: leaving}))
	return srv, handover(reflect.ValueOf(srv).Elem())
}

// handover gives a server a queue of accepted connections, as its own listening sockets would fill
// it. The server has no function for that, and its own connect loop waits one to two seconds before
// it dials first, which a restart has not.
func handover(srv reflect.Value) chan<- *net.TCPConn {
	field := srv.FieldByName("acceptCh")
	queue := make(chan *net.TCPConn, 1)
	if !field.IsValid() || field.Type() != reflect.TypeOf(queue) {
		return nil
	}
	reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(queue))
	return queue
}
