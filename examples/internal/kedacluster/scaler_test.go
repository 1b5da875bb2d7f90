//go:build linux

package kedacluster_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A scaler is an external scaler that asks for a number of replicas.
type scaler struct {
	externalscaler.UnimplementedExternalScalerServer

	replicas atomic.Int64
	calls    atomic.Int64
}

// startScaler serves a scaler until the test ends, and returns it with its address.
func startScaler(t *testing.T, replicas int64, options ...grpc.ServerOption) (s *scaler, address string) {
	t.Helper()
	s = &scaler{}
	s.replicas.Store(replicas)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer(options...)
	externalscaler.RegisterExternalScalerServer(server, s)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-served)
	})
	return s, listener.Addr().String()
}

// IsActive implements the service.
func (s *scaler) IsActive(context.Context, *externalscaler.ScaledObjectRef) (*externalscaler.IsActiveResponse, error) {
	s.calls.Add(1)
	return &externalscaler.IsActiveResponse{Result: s.replicas.Load() > 0}, nil
}

// GetMetricSpec implements the service: one unit per replica.
func (s *scaler) GetMetricSpec(
	context.Context, *externalscaler.ScaledObjectRef,
) (*externalscaler.GetMetricSpecResponse, error) {
	s.calls.Add(1)
	return &externalscaler.GetMetricSpecResponse{MetricSpecs: []*externalscaler.MetricSpec{
		{MetricName: "replicas", TargetSize: 1, TargetSizeFloat: 1},
	}}, nil
}

// GetMetrics implements the service.
func (s *scaler) GetMetrics(
	_ context.Context, r *externalscaler.GetMetricsRequest,
) (*externalscaler.GetMetricsResponse, error) {
	s.calls.Add(1)
	n := s.replicas.Load()
	return &externalscaler.GetMetricsResponse{MetricValues: []*externalscaler.MetricValue{
		{MetricName: r.GetMetricName(), MetricValue: n, MetricValueFloat: float64(n)},
	}}, nil
}
