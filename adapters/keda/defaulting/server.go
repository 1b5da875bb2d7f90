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
	headerTime     = 2 * time.Second // for the TLS handshake, and for the header of a request
	answerTime     = 10 * time.Second
	idleTime       = 2 * time.Minute // longer than an API server's own 90 s: this server must not be the first to close a connection
	maxHeader      = 16 << 10
	maxConnections = 512
	maxOfClient    = 256 // an API server opens a connection for each review that it waits for
)

// NewServer returns a server for webhooks. Other clients that reach its port cannot block the API server: a TLS handshake and
// a request header have 2 s, a client may have 256 connections, and all clients together 512. One more closes the newest
// connection of the client with the most connections. The server speaks only HTTP/1.1, so that a connection has one request
// at a time. config has the certificate; nil is for tests.
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

// connections are the open connections, by client.
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
				surplus = encrypted.NetConn() // closing the TLS connection would send an alert and wait for it
			}
			_ = surplus.Close() // it may be closed already
		}
	case http.StateClosed, http.StateHijacked:
		c.remove(client, conn)
	default:
	}
}

// add records a connection. It returns a connection to close, or nil.
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
	if c.of[client] = slices.Delete(c.of[client], i, i+1); len(c.of[client]) == 0 {
		delete(c.of, client)
	}
}
