package main

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"

	"github.com/inferscale/inferscale/adapters/keda"
)

// serve serves until ctx ends. Then it says that it is not healthy, streams end, and what is called before KEDA has turned
// to another replica is answered as ever, for patience at most; only after that the engine is closed.
func serve(ctx context.Context, patience time.Duration, server *grpc.Server, healthy *health.Server, listener net.Listener, engine *keda.Engine) error {
	defer engine.Close()
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	healthy.Shutdown()
	engine.Drain()
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-stopped:
	case <-timer.C:
		go server.Stop() // it waits for connections that have said nothing yet, for ten seconds
		return nil
	}
	return <-done
}
