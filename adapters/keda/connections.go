package keda

import (
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc/credentials"
)

// connections refuses connections of a client that has as many as it may have, before the handshake. A client is an IP address.
type connections struct {
	credentials.TransportCredentials

	mu     sync.Mutex
	byHost map[string]int
}

// ServerHandshake makes the handshake of a connection, which counts until it is closed.
func (c *connections) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	host, _, _ := net.SplitHostPort(raw.RemoteAddr().String()) // none if it is not of a network
	if !c.enter(host) {
		return nil, nil, fmt.Errorf("%s has %d connections, and no more are allowed", host, mostConnections)
	}
	leave := sync.OnceFunc(func() { c.leave(host) })
	conn, info, err := c.TransportCredentials.ServerHandshake(raw)
	if err != nil {
		leave()
		return nil, nil, err
	}
	return connection{conn, leave}, info, nil
}

func (c *connections) enter(host string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost[host] >= mostConnections {
		return false
	}
	c.byHost[host]++
	return true
}

func (c *connections) leave(host string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byHost[host]--; c.byHost[host] == 0 {
		delete(c.byHost, host)
	}
}

// A connection counts until it is closed.
type connection struct {
	net.Conn

	leave func()
}

func (c connection) Close() error {
	defer c.leave() // with TLS it may wait for a client that does not read
	return c.Conn.Close()
}
