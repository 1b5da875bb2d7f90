//go:build go1.25

package keda

import (
	"context"
	"net"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/peer"
)

// TestHalfMessagesTakeBoundedMemory: who has a certificate sent the headers and a quarter of the message of each call that a
// connection has room for, 1.3 GB for a process that may have 512 MiB. All but some end soon now; those that come at once and
// whose messages come too, as of KEDA's streams after a restart, do not, and neither does that of another address.
func TestHalfMessagesTakeBoundedMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := arriving{byHost: make(map[string]int)}
		tap := func(host string, n int) (calls []context.Context) {
			from := &peer.Peer{Addr: &net.TCPAddr{IP: net.ParseIP(host), Port: 1}}
			for range n {
				ctx, err := a.tap(peer.NewContext(t.Context(), from), nil)
				require.NoError(t, err)
				calls = append(calls, ctx)
			}
			return calls
		}
		passes := func(d time.Duration) {
			time.Sleep(d) // of synctest's clock
			synctest.Wait()
		}
		open := func(calls []context.Context) (n int) {
			for _, ctx := range calls {
				if ctx.Err() == nil {
					n++
				}
			}
			return n
		}

		whole := tap("10.0.0.1", 20*mostArriving/2)
		for _, ctx := range whole {
			arrived(ctx)
		}
		half, other := tap("10.0.0.1", 20*mostArriving/2), tap("10.0.0.2", 10)
		passes(soon + time.Millisecond)
		require.Equal(t, len(whole), open(whole))
		require.Equal(t, mostArriving/2, open(half))
		require.Equal(t, 10, open(other))

		passes(callTimeout - soon)
		require.Zero(t, open(half)+open(other), "no message comes in time")
		require.Empty(t, a.byHost)

		var many []context.Context
		for host := range 20 {
			many = append(many, tap("10.0.1."+strconv.Itoa(host), 100)...)
		}
		passes(soon + time.Millisecond)
		require.Equal(t, mostArriving, open(many), "addresses share the places")
		passes(callTimeout)
		require.Equal(t, len(whole), open(whole))
	})
}
