package defaulting

import (
	"crypto/tls"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of NewServer.
const (
	headerTime     = 2 * time.Second // for the handshake and the header of a request
	answerTime     = 10 * time.Second
	idleTime       = 2 * time.Minute // an API server's own is 90 s: whoever ends a connection first must not be us
	maxHeader      = 16 << 10
	maxConnections = 512
	maxOfClient    = 256 // an API server has a connection for each review that it waits for
)

// NewServer returns a server for webhooks that whoever reaches its port cannot take from the API server. A handshake and
// a header have 2 s, a client has 256 connections, and all have 512: one more ends the newest of the client that has the most.
// It speaks HTTP/1.1 only, so that a request is a connection. Config says with which certificate; nil is for tests.
func NewServer(handler http.Handler, config *tls.Config) *http.Server {
	if config != nil {
		config = config.Clone()
		config.NextProtos = []string{"http/1.1"}
	}
	open := connections{of: make(map[string][]net.Conn)}
	return &http.Server{
		Handler: handler, TLSConfig: config, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
		ReadHeaderTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ConnState: open.changed,
	}
}

// Connections are those that are open, by client.
type connections struct {
	mu    sync.Mutex
	total int
	of    map[string][]net.Conn
}

func (c *connections) changed(conn net.Conn, state http.ConnState) {
	client := clientOf(conn.RemoteAddr().String())
	switch state {
	case http.StateNew:
		if surplus := c.add(client, conn); surplus != nil {
			if encrypted, ok := surplus.(*tls.Conn); ok {
				surplus = encrypted.NetConn() // which says no goodbye, for which it would wait
			}
			_ = surplus.Close() // it may be closed by now
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(client, conn)
	default:
	}
}

// add notes a connection, and returns one that is to be closed, or nil.
func (c *connections) add(client string, conn net.Conn) (surplus net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[client] = append(c.of[client], conn)
	c.total++
	most := client
	if c.total > maxConnections {
		for other, has := range c.of {
			if len(has) > len(c.of[most]) {
				most = other
			}
		}
	} else if len(c.of[client]) <= maxOfClient {
		return nil
	}
	last := len(c.of[most]) - 1
	surplus = c.of[most][last]
	c.drop(most, last)
	return surplus
}

func (c *connections) remove(client string, conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.of[client], conn); i >= 0 {
		c.drop(client, i)
	}
}

func (c *connections) drop(client string, i int) {
	c.total--
	c.of[client] = append(c.of[client][:i:i], c.of[client][i+1:]...)
	if len(c.of[client]) == 0 {
		delete(c.of, client)
	}
}
