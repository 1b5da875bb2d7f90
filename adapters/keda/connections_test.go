package keda

import (
	"errors"
	"net"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// TestRegressionConnectionsOfAClientAreBounded: one address could open as many as it has ports. 28,000 took 490 MB without TLS, and
// with it more. Who closes one may open another.
func TestRegressionConnectionsOfAClientAreBounded(t *testing.T) {
	address := serve(t, GRPCConfig{Engine: newStage(t, nil).engine}).Target()
	answered := func() (net.Conn, bool) {
		conn, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")) // it may be refused already
		_, err = conn.Read(make([]byte, 1))
		return conn, err == nil
	}
	first, ok := answered()
	require.True(t, ok)
	for range mostConnections - 1 {
		_, ok := answered()
		require.True(t, ok)
	}
	_, ok = answered()
	require.False(t, ok, "one more")
	require.NoError(t, first.Close())
	require.Eventually(t, func() bool {
		_, ok := answered()
		return ok
	}, patience, patience/1000)
}

// handshake is a handshake that fails if it has an error.
type handshake struct {
	credentials.TransportCredentials

	err error
}

func (h *handshake) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	if h.err != nil {
		return nil, nil, h.err
	}
	return h.TransportCredentials.ServerHandshake(raw)
}

// TestConnectionsCountUntilTheyAreClosed: once each, however often they are closed, and not after a handshake that failed.
func TestConnectionsCountUntilTheyAreClosed(t *testing.T) {
	within := &handshake{TransportCredentials: insecure.NewCredentials()}
	c := &connections{TransportCredentials: within, byHost: make(map[string]int)}
	raw, other := net.Pipe() // has no host
	defer func() { _ = other.Close() }()
	conn, _, err := c.ServerHandshake(raw)
	require.NoError(t, err)
	_, _, err = c.ServerHandshake(raw)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"": 2}, c.byHost)
	require.NoError(t, conn.Close())
	require.NoError(t, conn.Close())
	require.Equal(t, map[string]int{"": 1}, c.byHost)
	within.err = errors.New("no certificate")
	_, _, err = c.ServerHandshake(raw)
	require.ErrorIs(t, err, within.err)
	require.Equal(t, map[string]int{"": 1}, c.byHost)
}

// watchedClose is a connection that tells when it is being closed.
type watchedClose struct {
	net.Conn

	told func()
}

func (c watchedClose) Close() error {
	c.told()
	return c.Conn.Close()
}

// TestRegressionAConnectionCountsWhileItIsBeingClosed: with TLS that takes up to five seconds if the client does not read, and it counted
// no longer.
func TestRegressionAConnectionCountsWhileItIsBeingClosed(t *testing.T) {
	c := &connections{TransportCredentials: insecure.NewCredentials(), byHost: make(map[string]int)}
	raw, other := net.Pipe()
	defer func() { _ = other.Close() }()
	counted := 0
	conn, _, err := c.ServerHandshake(watchedClose{raw, func() { counted = c.byHost[""] }})
	require.NoError(t, err)
	require.NoError(t, conn.Close())
	require.Equal(t, 1, counted)
	require.Empty(t, c.byHost)
}
