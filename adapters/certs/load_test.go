package certs_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/certs"
)

// A rig is a server, a keeper and the clock that both live by.
type rig struct {
	t       *testing.T
	clock   *clock
	cluster *cluster
	keeper  *certs.Keeper
	actions []certs.Action
	indexer cache.Indexer
	address string
	shakes  atomic.Int64
	eras    eras
}

// Eras are the times between two leaps of the clock. What began in one may see the next three leaps, and the keeper at work
// in them, but not a fourth: that waits. So whoever reads a Secret and connects does so within the overlap, as the promise
// wants, though not within one state of the rotation.
type eras struct {
	mu      sync.Mutex
	changed sync.Cond
	now     int
	inside  map[int]int // how many of each era have not ended
	kept    int         // the last in which the keeper was at work
	over    bool        // there are no more leaps
}

// enter returns the era; leave ends what began in it, and says whether another has come meanwhile.
func (e *eras) enter() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inside[e.now]++
	return e.now
}

func (e *eras) leave(era int) (moved bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.inside[era]--
	e.changed.Broadcast()
	return era != e.now
}

// dawdle waits until the keeper has been at work in the eras that follow, at most two.
func (e *eras) dawdle(era, eras int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.kept < era+eras && !e.over {
		e.changed.Wait()
	}
}

func (e *eras) leap() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for e.inside[e.now-2] > 0 {
		e.changed.Wait()
	}
	delete(e.inside, e.now-2)
	e.now++
}

func (e *eras) keep(over bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kept++
	e.over = over
	e.changed.Broadcast()
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: newClock(), cluster: newCluster(), eras: eras{inside: make(map[int]int)}}
	r.eras.changed.L = &r.eras.mu
	short := rules()
	short.LeafLife = 10 * day
	var err error
	r.keeper, err = certs.NewKeeper(certs.KeeperConfig{
		Client: r.cluster.CoreV1(), Rules: short, Namespace: "keda", Now: r.clock.now,
		OnAction: func(a certs.Action) { r.actions = append(r.actions, a) },
	})
	require.NoError(t, err)
	r.indexer = cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	r.ensure()
	config := certs.NewReader(certs.ReaderConfig{
		Source: certs.SecretSource{Lister: corelisters.NewSecretLister(r.indexer).Secrets("keda"), Namespace: "keda", Name: name},
		Now:    r.clock.now,
	}).TLS()
	read := config.GetConfigForClient
	config.GetConfigForClient = func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		r.shakes.Add(1)
		return read(h)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(config)),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 200 * time.Millisecond, MaxConnectionAgeGrace: 5 * time.Second}))
	grpc_health_v1.RegisterHealthServer(server, health.NewServer())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	r.address = listener.Addr().String()
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return r
}

// ensure does what the leader does, and what the informer does after it.
func (r *rig) ensure() {
	_, err := r.keeper.Ensure(r.t.Context())
	require.NoError(r.t, err)
	require.NoError(r.t, r.indexer.Add(r.cluster.get(r.t, name)))
}

// A client calls the scaler.
type client struct {
	rig                     *rig
	conn                    *grpc.ClientConn
	calls, repeated, failed int
	why                     error
	took                    []time.Duration
	moved                   atomic.Int32 // handshakes within which the clock leapt
}

// read reads the Secret.
func (c *client) read() (credentials.TransportCredentials, error) {
	secret, err := c.rig.cluster.CoreV1().Secrets("keda").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	config, err := certs.ClientTLS(materialOf(secret), host)
	if err != nil {
		return nil, err
	}
	config.Time = c.rig.clock.now
	return credentials.NewTLS(config), nil
}

func (c *client) dial(with credentials.TransportCredentials) (err error) {
	c.close()
	c.conn, err = grpc.NewClient("passthrough:///"+c.rig.address, grpc.WithTransportCredentials(with))
	return err
}

func (c *client) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

func (c *client) once() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := grpc_health_v1.NewHealthClient(c.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{})
	return err
}

// count makes a call and, if it fails, what is to be done then. What fails at last has failed.
func (c *client) count(otherwise func(error) error) {
	began := time.Now()
	err := c.once()
	if err != nil {
		err = otherwise(err)
	}
	c.calls++
	if err != nil {
		c.failed, c.why = c.failed+1, err
	}
	c.took = append(c.took, time.Since(began))
}

// renew reads the Secret, as one does at the start.
func (c *client) renew() error {
	with, err := c.read()
	if err == nil {
		err = c.dial(with)
	}
	return err
}

// asKEDA calls as KEDA does: with the pair that it read when it was built, and built anew, once, when a call fails.
func (c *client) asKEDA() {
	c.count(func(error) error {
		c.repeated++
		era := c.rig.eras.enter()
		defer c.rig.eras.leave(era)
		if err := c.renew(); err != nil {
			return err
		}
		return c.once()
	})
}

// A reader is the credentials of a client that reads the Secret anew at each handshake. One that is slow lets the
// keeper be at work in some eras between the two.
type reader struct {
	credentials.TransportCredentials

	c    *client
	slow int
}

func (r reader) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	era := r.c.rig.eras.enter()
	defer func() {
		if r.c.rig.eras.leave(era) {
			r.c.moved.Add(1)
		}
	}()
	with, err := r.c.read()
	if err != nil {
		return nil, nil, err
	}
	r.c.rig.eras.dawdle(era, r.slow)
	return with.ClientHandshake(ctx, authority, conn)
}

func (r reader) Clone() credentials.TransportCredentials { return r }

// session calls some times over a new connection. No call is repeated.
func (c *client) session(calls, slow int) {
	with, err := c.read() // for what is not the handshake
	if err == nil {
		err = c.dial(reader{with, c, slow})
	}
	if err != nil {
		c.failed, c.why = c.failed+1, err
		return
	}
	for range calls {
		c.count(func(err error) error { return err })
	}
}

// TestRotationUnderLoad has leaves renewed and the CA rotated while clients call over connections that the server closes
// when they are older than a fifth of a second, and three weeks go by in two seconds, six hours at a time.
//
// Eight of the clients do as KEDA does: they stay with what they read until a call fails; then they read it and repeat the
// call. A call of theirs counts as failed if the repetition fails too, and none does. How many were repeated is told: that
// is what KEDA sees of a rotation, and its HorizontalPodAutoscaler does not.
//
// Twelve read the Secret anew at each handshake, four of them a while before it. Of those every call counts as it is, and
// none fails. Nothing keeps the rotation off meanwhile, but for the promise's own condition: between reading and the end of
// the handshake at most 18 h go by, of an overlap of 24 h.
//
// INFERSCALE_ROTATION=2000x30s makes it 2,000 calls a second for 30 seconds, in place of 1,000 for 2; those four come on top.
func TestRotationUnderLoad(t *testing.T) {
	rate, lasts := 1000, 2*time.Second
	if load := os.Getenv("INFERSCALE_ROTATION"); load != "" {
		var text string
		_, err := fmt.Sscanf(load, "%dx%s", &rate, &text)
		require.NoError(t, err)
		lasts, err = time.ParseDuration(text)
		require.NoError(t, err)
	}
	const (
		clients = 16
		slow    = 4 // more
		calls   = 5 // of a session
	)
	r := newRig(t)
	end := make(chan struct{})
	all := make([]*client, clients+slow)
	var wg sync.WaitGroup
	for i := range all {
		c := &client{rig: r}
		all[i] = c
		require.NoError(t, c.renew())
		every, call := time.Duration(clients)*time.Second/time.Duration(rate), c.asKEDA
		if i%2 == 1 {
			every, call = every*calls, func() { c.session(calls, 0) }
		}
		if i >= clients { // by turns, so that one has read before each era and connects after the next
			dawdles := 1 + i%2
			every, call = time.Millisecond, func() { c.session(calls, dawdles); dawdles = 2 }
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			defer c.close()
			tick := time.NewTicker(every)
			defer tick.Stop()
			for {
				select {
				case <-end:
					return
				case <-tick.C:
					call()
				}
			}
		}()
	}

	// 24 days: 4 before the rotation, about 12 that it takes, and some.
	const leaps = 24 * 4
	began := time.Now()
	tick := time.NewTicker(lasts / leaps)
	for i := range leaps {
		<-tick.C
		r.eras.leap()
		r.clock.set(r.clock.now().Add(6 * time.Hour))
		if i == 16 {
			require.NoError(t, r.keeper.RotateCA(t.Context(), "today"))
		}
		r.ensure()
		r.eras.keep(i == leaps-1)
	}
	tick.Stop()
	lasted := time.Since(began)
	close(end)
	wg.Wait()

	var done []certs.Code
	for _, a := range r.actions {
		done = append(done, a.Code)
	}
	for _, code := range []certs.Code{certs.PublishCA, certs.SwitchCA, certs.DropCA} {
		require.Contains(t, done, code)
	}
	var counted, failed, repeated, moved, renewals int
	var took []time.Duration
	for i, c := range all {
		counted, failed, repeated, moved, took = counted+c.calls, failed+c.failed, repeated+c.repeated, moved+int(c.moved.Load()), append(took, c.took...)
		require.NoError(t, c.why, "client %d", i)
		if i%2 == 1 || i >= clients {
			require.Zero(t, c.repeated)
			require.Positive(t, c.calls)
		}
	}
	for _, c := range done {
		if c == certs.IssueClient {
			renewals++
		}
	}
	slices.Sort(took)
	t.Logf("%d calls in %s (%.0f/s), %d failed, %d repeated by KEDA's rule; p50 %s, p99 %s, max %s; %d handshakes, %d of those that read anew while the clock leapt; %d client certificates, one rotation",
		counted, lasted.Round(time.Millisecond), float64(counted)/lasted.Seconds(), failed, repeated,
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], r.shakes.Load(), moved, renewals)
	require.Zero(t, failed)
	require.Positive(t, repeated, "those that stay with what they read do see the rotation")
}
