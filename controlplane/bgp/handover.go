package bgp

import (
	"net"
	"reflect"

	"github.com/osrg/gobgp/v3/pkg/server"
)

// handover gives a server that does not serve yet a queue of accepted connections, as its
// own listening sockets would fill it. The server has no function for that, and its own
// connect loop waits one to two seconds before it dials first, which a restart has not.
// nil: this version of the server has no such queue, and dials.
func handover(srv *server.BgpServer) chan<- *net.TCPConn {
	field := reflect.ValueOf(srv).Elem().FieldByName("acceptCh")
	queue := make(chan *net.TCPConn, 1)
	if !field.IsValid() || field.Type() != reflect.TypeOf(queue) {
		return nil
	}
	reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Set(reflect.ValueOf(queue))
	return queue
}
