package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A steady trigger has one value.
type steady struct{}

func (steady) Round(_ context.Context, now time.Time) (keda.Snapshot, error) {
	return keda.Snapshot{At: now, Spec: keda.Spec{Metric: "q", Target: 1}, Value: 3, Active: true}, nil
}

func (steady) Close() {}

// served serves a steady engine, and returns a client, and what ends the server as a rolling update does.
func served(t *testing.T) (c caller, end func(), ended <-chan error) {
	t.Helper()
	engine, err := keda.NewEngine(t.Context(), keda.EngineConfig{Build: func(keda.Ref, map[string]string) (keda.Plan, error) {
		return keda.Plan{Trigger: steady{}, Spec: keda.Spec{Metric: "q", Target: 1}, Interval: time.Minute}, nil
	}})
	require.NoError(t, err)
	server, healthy, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine})
	require.NoError(t, err)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, 2*patience, server, healthy, listener, engine) }()
	return call(t, listener.Addr().String(), nil), end, done
}

// within waits for a server's end.
func within(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.FailNow(t, "it does not end")
	}
}

// TestNoCallFailsByAnEnd: a scaler that ends answers whoever has not turned away yet.
func TestNoCallFailsByAnEnd(t *testing.T) {
	for range 5 {
		c, end, ended := served(t)
		ref := trigger("chat")
		c.comes(t, ref, "q", 3)
		var callers sync.WaitGroup
		var calls atomic.Int64
		for range 8 {
			callers.Go(func() {
				for {
					_, err := c.value(context.WithoutCancel(t.Context()), ref, "q")
					if err != nil { // there is nobody at the address any more
						if strings.Contains(err.Error(), "shutting down") {
							t.Errorf("after %d calls: %v", calls.Load(), err)
						}
						return
					}
					calls.Add(1)
				}
			})
		}
		eventually(t, func() error {
			if n := calls.Load(); n < 100 {
				return fmt.Errorf("%d calls", n)
			}
			return nil
		})
		end()
		within(t, ended)
		callers.Wait()
	}
}

// TestEndIsTold: who watches the health is told of the end before it comes, and streams do not put it off.
func TestEndIsTold(t *testing.T) {
	c, end, ended := served(t)
	stream, err := c.StreamIsActive(t.Context(), trigger("chat"))
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	ctx, hangUp := context.WithCancel(t.Context())
	watch, err := healthgrpc.NewHealthClient(c.conn).Watch(ctx, &healthgrpc.HealthCheckRequest{Service: externalscaler.ExternalScaler_ServiceDesc.ServiceName})
	require.NoError(t, err)
	state, err := watch.Recv()
	require.NoError(t, err)
	require.Equal(t, healthgrpc.HealthCheckResponse_SERVING, state.GetStatus())
	end()
	state, err = watch.Recv()
	require.NoError(t, err)
	require.Equal(t, healthgrpc.HealthCheckResponse_NOT_SERVING, state.GetStatus())
	_, err = stream.Recv()
	requireUnavailable(t, err, "the scaler is shutting down")
	hangUp()
	within(t, ended)
}
