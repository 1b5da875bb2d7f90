package k8s_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/realtime"
	"github.com/inferscale/inferscale/scaling"
)

// A target that was scaled to zero has no pods to ask, so the policy that goes by their metrics can say nothing. A
// timetable under it needs none: at eight in the morning there are five replicas.
func Example() {
	cluster := newCluster(0) // in place of an API server
	bounds := scaling.Bounds{Min: 0, Max: 10}

	base, err := realtime.New(realtime.Kaito(bounds, realtime.Metric{Name: "vllm:num_requests_waiting", High: 10, Low: 2}))
	if err != nil {
		log.Fatal(err)
	}
	timetable, err := cronscale.New(cronscale.Config{Bounds: bounds, Policies: []cronscale.Policy{
		{Name: "morning", Schedule: "0 8 * * *", TargetReplicas: 5},
		{Name: "night", Schedule: "0 22 * * *", TargetReplicas: 0},
	}})
	if err != nil {
		log.Fatal(err)
	}
	policy, err := scaling.Floor(scaling.New(base), timetable, bounds)
	if err != nil {
		log.Fatal(err)
	}

	client := fake.NewClientset() // kubernetes.NewForConfig
	store, err := k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: client.CoreV1(), Namespace: "default", Name: "llama-scaling"})
	if err != nil {
		log.Fatal(err)
	}
	now := time.Date(2026, 3, 2, 7, 59, 50, 0, time.UTC)
	loop, err := k8s.NewLoop(k8s.LoopConfig{
		Target: k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama"},
		Policy: policy,
		Bounds: bounds,
		Settings: k8s.Settings{
			Scales:   cluster.scaleClient(), // k8s.NewScales
			Observer: &observer{none: true}, // k8s.NewPodObserver
			Store:    store,
			Now:      func() time.Time { return now },
		},
	})
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
