package keda_test

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
)

// A backlog is a trigger of one's own: it says how many jobs wait.
type backlog struct {
	spec  keda.Spec
	count func(context.Context) (int, error)
}

func (b *backlog) Round(ctx context.Context, now time.Time) (keda.Snapshot, error) {
	n, err := b.count(ctx)
	if err != nil {
		return keda.Snapshot{}, err // the last snapshot goes on answering, until it is stale
	}
	return keda.Snapshot{At: now, Spec: b.spec, Value: float64(n), Active: n > 0}, nil
}

func (b *backlog) Close() {}

// buildBacklog makes the trigger of a ScaledObject's metadata.
func buildBacklog(_ keda.Ref, metadata map[string]string) (keda.Plan, error) {
	text := metadata["perReplica"]
	target, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return keda.Plan{}, fmt.Errorf("perReplica: %q: must be a number", text) // answered as InvalidArgument
	}
	spec := keda.Spec{Metric: "jobs", Target: target}
	count := func(context.Context) (int, error) { return 45, nil }
	return keda.Plan{Trigger: &backlog{spec, count}, Spec: spec, Interval: 15 * time.Second}, nil
}

// A scaler with a trigger of its own, asked as KEDA asks it.
func ExampleTrigger() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	engine, err := keda.NewEngine(ctx, keda.EngineConfig{Build: buildBacklog})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	server, _, err := keda.NewGRPC(keda.GRPCConfig{Engine: engine}) // with TLS: certs.TLS(...) anywhere but here
	if err != nil {
		fmt.Println(err)
		return
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		return
	}
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()

	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = conn.Close() }()
	scaler := externalscaler.NewExternalScalerClient(conn)
	for _, perReplica := range []string{"10", "ten"} {
		ref := &externalscaler.ScaledObjectRef{Namespace: "default", Name: "workers", ScalerMetadata: map[string]string{"perReplica": perReplica}}
		asked := &externalscaler.GetMetricsRequest{ScaledObjectRef: ref, MetricName: "jobs"}
		got, err := scaler.GetMetrics(ctx, asked)
		for status.Code(err) == codes.Unavailable { // no round has ended yet
			time.Sleep(10 * time.Millisecond)
			got, err = scaler.GetMetrics(ctx, asked)
		}
		if err != nil {
			fmt.Println(status.Code(err), status.Convert(err).Message())
			continue
		}
		fmt.Println("jobs", got.GetMetricValues()[0].GetMetricValueFloat())
	}
	// Output:
	// jobs 45
	// InvalidArgument perReplica: "ten": must be a number
}
