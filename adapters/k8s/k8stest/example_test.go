package k8stest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/k8stest"
	"github.com/inferscale/inferscale/cronscale"
	"github.com/inferscale/inferscale/scaling"
)

// The answer to a write is lost, and the process that made it ends. The next one finds that it was carried out.
func Example() {
	target := k8s.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "models", Name: "chat"}
	cluster := k8stest.New(1, target)
	now := time.Date(2026, 3, 2, 8, 0, 5, 0, time.UTC)
	begin := func() *k8s.Loop {
		timetable, err := cronscale.New(cronscale.Config{
			Bounds: scaling.Bounds{Min: 0, Max: 10}, Policies: []cronscale.Policy{{Name: "morning", Schedule: "0 8 * * *", TargetReplicas: 5}},
		})
		if err != nil {
			panic(err)
		}
		loop, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: scaling.New(timetable), Settings: k8s.Settings{
			Scales: cluster.Scales(), Store: cluster.Store(), Now: func() time.Time { return now },
		}})
		if err != nil {
			panic(err)
		}
		return loop
	}

	cluster.Fault = func(call string, effect func()) error {
		effect()
		if call == k8stest.UpdateScale {
			return errors.New("connection reset")
		}
		return nil
	}
	outcome, err := begin().Tick(context.Background())
	fmt.Println(outcome.Write, errors.Is(err, k8s.ErrUncertain), cluster.Replicas("chat"))

	cluster.Fault = nil
	now = now.Add(15 * time.Second)
	outcome, err = begin().Tick(context.Background())
	fmt.Println(outcome.Write, outcome.Settled, err, cluster.Written)
	// Output:
	// uncertain true 5
	// none true <nil> [5]
}
