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

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/adapters/keda/externalscaler"
	"github.com/inferscale/inferscale/scaling"
)

// A fleet stands for a cluster: a target of four replicas, each of which has 15 requests waiting.
type fleet struct{}

func (fleet) Get(_ context.Context, t k8s.Target) (k8s.Scale, error) {
	return k8s.Scale{Target: t, Replicas: 4}, nil
}

func (fleet) Observe(context.Context, []k8s.Scale) (k8s.Observed, error) {
	waiting := scaling.Exactly("vllm:num_requests_waiting", 15)
	waiting.Values = 4
	return k8s.Observed{Readings: []scaling.Reading{waiting}, Fleets: []k8s.FleetView{{Ready: 4}}}, nil
}

func (fleet) Close() {}

// The scaler of examples/kedascaler, on a fleet that stands still: in a cluster Scales is a *k8s.Scales, and Observe
// makes a *k8s.PodObserver.
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	triggers, err := keda.NewTriggers(keda.TriggersConfig{
		Scales:  fleet{},
		Observe: func(*build.Plan) (keda.Observer, error) { return fleet{}, nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, err := keda.NewEngine(ctx, keda.EngineConfig{Build: triggers.Build})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	for _, metadata := range []map[string]string{
		{"scalerName": "keda-kaito-scaler", "threshold": "10"},
		{"scalerName": "keda-kaito-scaler", "threshold": "10", "mode": "replicas", "profile": "hpa"},
		{"scalerName": "keda-kaito-scaler", "threshold": "ten"},
	} {
		chat := keda.Ref{Namespace: "models", Name: "chat"}
		s, err := engine.Snapshot(chat, metadata)
		for status.Code(err) == codes.Unavailable { // no round has ended yet
			time.Sleep(10 * time.Millisecond)
			s, err = engine.Snapshot(chat, metadata)
		}
		if err != nil {
			fmt.Println(status.Code(err), status.Convert(err).Message())
			continue
		}
		fmt.Println(s.Spec.Metric, s.Value, "at", s.Spec.Target)
		fmt.Println("    " + s.Because)
	}
	// Output:
	// vllm:num_requests_waiting 60 at 10
	//     vllm:num_requests_waiting: 60, within 60 and 60 of 4 pods (0 without a value), for 4 replicas at 10
	// desired-replicas 6 at 1
	//     Up 4 -> 6: AboveTarget vllm:num_requests_waiting load=60 > limit=44, target=10
	// InvalidArgument threshold: "ten": must be a number from 0.001 to below 1e+12: KEDA counts in thousandths
}

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
