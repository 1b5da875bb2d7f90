package main

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/inferscale/inferscale/adapters/keda"
)

// serve serves until ctx ends; then calls that are under way have some time, and streams end with the engine.
func serve(ctx context.Context, patience time.Duration, server *grpc.Server, listener net.Listener, engine *keda.Engine) error {
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	engine.Close()
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
