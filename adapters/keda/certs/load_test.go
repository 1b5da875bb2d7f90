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
	"google.golang.org/grpc/keepalive"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/keda/certs"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// An activeScaler answers yes.
type activeScaler struct {
	externalscaler.UnimplementedExternalScalerServer
}

func (activeScaler) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	return &externalscaler.IsActiveResponse{Result: true}, nil
}

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
	// leap is held while time is moved. Who holds it for reading reads a Secret and connects within one overlap.
	leap sync.RWMutex
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{t: t, clock: newClock(), cluster: newCluster()}
	r.keeper = newKeeper(t, r.cluster, r.clock, &r.actions)
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
	externalscaler.RegisterExternalScalerServer(server, activeScaler{})
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

// A kedaClient calls as KEDA does: with the pair that it read when it was built, and built anew, once, when a call fails.
type kedaClient struct {
	rig                    *rig
	conn                   *grpc.ClientConn
	calls, rebuilt, failed int
	why                    error
	took                   []time.Duration
}

func (c *kedaClient) build() error {
	c.close()
	secret, err := c.rig.cluster.CoreV1().Secrets("keda").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	config, err := certs.ClientTLS(materialOf(secret), host)
	if err != nil {
		return err
	}
	config.Time = c.rig.clock.now
	c.conn, err = grpc.NewClient("passthrough:///"+c.rig.address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	return err
}

func (c *kedaClient) close() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

func (c *kedaClient) once() error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := externalscaler.NewExternalScalerClient(c.conn).IsActive(ctx, &externalscaler.ScaledObjectRef{Name: "chat"})
	return err
}

func (c *kedaClient) call() {
	began := time.Now()
	err := c.once()
	if err != nil {
		c.rebuilt++
		c.rig.leap.RLock()
		if err = c.build(); err == nil {
			err = c.once()
		}
		c.rig.leap.RUnlock()
	}
	c.calls++
	if err != nil {
		c.failed, c.why = c.failed+1, err
	}
	c.took = append(c.took, time.Since(began))
}

// counted is a call that is counted and not repeated.
func (c *kedaClient) counted() error {
	began := time.Now()
	err := c.once()
	c.calls++
	c.took = append(c.took, time.Since(began))
	return err
}

// TestRotationUnderLoad has leaves renewed and the CA rotated while KEDA calls: no call fails. The server closes
// connections that are older than a fifth of a second, and four days go by in a few milliseconds. Half of the clients
// stay with what they read first until a call fails, the others read it anew every five calls: those never see a call
// fail, the first see some, and repeat them.
//
// INFERSCALE_ROTATION=2000x30s makes it 2,000 calls a second for 30 seconds.
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
		session = 5
	)
	r := newRig(t)
	end := make(chan struct{})
	all := make([]*kedaClient, clients)
	var wg sync.WaitGroup
	for i := range all {
		c := &kedaClient{rig: r}
		all[i] = c
		require.NoError(t, c.build())
		every := time.Duration(clients) * time.Second / time.Duration(rate)
		calls := 1
		if i%2 == 1 {
			calls, every = session, every*session
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
				}
				if calls == 1 {
					c.call()
					continue
				}
				r.leap.RLock()
				err := c.build()
				for range calls {
					if err == nil {
						err = c.counted()
					}
				}
				r.leap.RUnlock()
				if err != nil {
					c.failed, c.why = c.failed+1, err
				}
			}
		}()
	}

	// 200 days: 32 before the rotation, about 95 that it takes, and some.
	const leaps = 50
	began := time.Now()
	tick := time.NewTicker(lasts / leaps)
	for i := range leaps {
		<-tick.C
		r.leap.Lock()
		r.clock.set(r.clock.now().Add(4 * day))
		if i == 7 {
			require.NoError(t, r.keeper.RotateCA(t.Context(), "today"))
		}
		r.ensure()
		r.leap.Unlock()
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
	var calls, failed, rebuilt, renewals int
	var took []time.Duration
	for i, c := range all {
		calls, failed, rebuilt, took = calls+c.calls, failed+c.failed, rebuilt+c.rebuilt, append(took, c.took...)
		require.NoError(t, c.why, "client %d", i)
		if i%2 == 1 {
			require.Zero(t, c.rebuilt)
		}
	}
	for _, c := range done {
		if c == certs.IssueClient {
			renewals++
		}
	}
	slices.Sort(took)
	t.Logf("%d calls in %s (%.0f/s), %d failed, %d repeated by KEDA's rule; p50 %s, p99 %s, max %s; %d handshakes; %d client certificates, one rotation",
		calls, lasted.Round(time.Millisecond), float64(calls)/lasted.Seconds(), failed, rebuilt,
		took[len(took)/2], took[len(took)*99/100], took[len(took)-1], r.shakes.Load(), renewals)
	require.Zero(t, failed)
	require.Positive(t, rebuilt, "those that stay with what they read do see the switch")
}
