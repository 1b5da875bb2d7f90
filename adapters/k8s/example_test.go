package k8s_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"k8s.io/client-go/rest"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/k8stest"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// timetable asks for five replicas from eight to ten, whatever the load.
func timetable(bounds scaling.Bounds) (cronscale.Scaler, error) {
	return cronscale.New(cronscale.Config{Bounds: bounds, Policies: []cronscale.Policy{
		{Name: "morning", Schedule: "0 8 * * *", TargetReplicas: 5},
		{Name: "night", Schedule: "0 22 * * *", TargetReplicas: 0},
	}})
}

// What a program does whose rest.Config comes from rest.InClusterConfig or clientcmd.
func ExampleFor() {
	scale := func(ctx context.Context, config *rest.Config, target k8s.Target, policy scaling.Policy) error {
		cluster, err := k8s.For(config)
		if err != nil {
			return err
		}
		settings, err := cluster.Settings(ctx, target, scrape.Named("vllm:num_requests_waiting"))
		if err != nil {
			return err
		}
		loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: policy, Settings: settings})
		if err != nil {
			return err
		}
		return loop.Run(ctx)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	fmt.Println(scale(ctx, &rest.Config{Host: "127.0.0.1"}, k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama"}, nil))
	// Output:
	// context canceled
}

// A write is conditional on what was read: who wrote in between is never overwritten.
func ExampleNewScales() {
	cluster := k8stest.New(3, target)
	scales := cluster.Scales() // k8s.NewScales(getter, mapper)

	ctx := context.Background()
	read, err := scales.Get(ctx, target)
	fmt.Println(read.Replicas, err)
	cluster.Touch("llama") // somebody else
	_, err = scales.Set(ctx, target, read, 4)
	fmt.Println(errors.Is(err, k8s.ErrConflict))
	read, err = scales.Get(ctx, target)
	if err == nil {
		read, err = scales.Set(ctx, target, read, 4)
	}
	fmt.Println(read.Replicas, err)
	// Output:
	// 3 <nil>
	// true
	// 4 <nil>
}

// A target that was scaled to zero has no pods to ask, so the policy that goes by their metrics can say nothing. A
// timetable under it needs none: at eight in the morning there are five replicas.
func Example() {
	target := k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama"}
	cluster := k8stest.New(0, target) // in place of an API server
	bounds := scaling.Bounds{Min: 0, Max: 10}

	base, err := realtime.New(realtime.Kaito(bounds, realtime.Metric{Name: "vllm:num_requests_waiting", High: 10, Low: 2}))
	if err != nil {
		log.Fatal(err)
	}
	floor, err := timetable(bounds)
	if err != nil {
		log.Fatal(err)
	}
	policy, err := scaling.Floor(scaling.New(base), floor, bounds)
	if err != nil {
		log.Fatal(err)
	}

	now := time.Date(2026, 3, 2, 7, 59, 50, 0, time.UTC)
	loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: policy, Bounds: bounds, Settings: k8s.Settings{
		Scales:   cluster.Scales(),
		Observer: &observer{none: true}, // k8s.NewPodObserver
		Store:    cluster.Store(),
		Now:      func() time.Time { return now },
	}})
	if err != nil {
		log.Fatal(err)
	}

	// In a program: loop.Run(ctx).
	for range 3 {
		outcome, err := loop.Tick(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(now.Format(time.TimeOnly), outcome.Write, "-", outcome.Decision.Reason())
		now = now.Add(15 * time.Second)
	}
	// Output:
	// 07:59:50 none - Unknown at 0: NoSample vllm:num_requests_waiting
	// 08:00:05 written - Up 0 -> 5: Lifted morning from=0 < floor=5
	// 08:00:20 none - Unknown at 5: NoSample vllm:num_requests_waiting
}

// Two Deployments serve one model on GPUs of two prices. Any policy says how many replicas they are to have together,
// and hetero on which: the cheap ones first.
func ExampleNewVariantLoop() {
	cheap := k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama-l4"}
	dear := k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama-a100"}
	cluster := k8stest.New(0, cheap, dear)

	fleet, err := hetero.New(hetero.Config{
		Types: []hetero.Type{{Name: "l4", Cost: 10, Max: 3}, {Name: "a100", Cost: 60, Max: 4}}, ExpansionRate: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	total, err := timetable(scaling.Bounds{Min: 0, Max: 7})
	if err != nil {
		log.Fatal(err)
	}
	group, err := hetero.NewGroup(scaling.New(total), fleet, hetero.Options{})
	if err != nil {
		log.Fatal(err)
	}
	loop, err := k8s.NewVariantLoop(k8s.VariantLoopConfig{
		Variants: []k8s.Variant{{Name: "l4", Target: cheap}, {Name: "a100", Target: dear}},
		Group:    group,
		Settings: k8s.Settings{
			Scales: cluster.Scales(), Observer: &observer{}, Store: cluster.Store(),
			Now: func() time.Time { return time.Date(2026, 3, 2, 8, 0, 5, 0, time.UTC) },
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	outcomes, err := loop.Tick(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, o := range outcomes {
		fmt.Println(o.Target.Name, o.Write, o.Decision.From, "->", o.Decision.Replicas)
	}
	// Output:
	// llama-l4 written 0 -> 3
	// llama-a100 written 0 -> 2
}

// Somebody else changes the target just before it is written: that is a conflict, and it is decided again.
func ExampleSettings_conflicts() {
	cluster := k8stest.New(0, target)
	cluster.BeforeWrite(func() { cluster.Targets["llama"].Spec.Replicas = 2; cluster.Touch("llama") }, nil)
	policy, err := timetable(scaling.Bounds{Min: 0, Max: 10})
	if err != nil {
		log.Fatal(err)
	}
	loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: scaling.New(policy), Settings: k8s.Settings{
		Scales: cluster.Scales(), Store: cluster.Store(),
		Now: func() time.Time { return time.Date(2026, 3, 2, 8, 0, 5, 0, time.UTC) },
	}})
	if err != nil {
		log.Fatal(err)
	}
	outcome, err := loop.Tick(context.Background())
	fmt.Println(err, outcome.Write, outcome.Conflicts, outcome.Decision.From, "->", outcome.Decision.Replicas, cluster.Replicas("llama"))
	// Output:
	// <nil> written 1 2 -> 5 5
}
