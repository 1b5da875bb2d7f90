package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// again is how long after the API server has ended a watch the next begins. It ends each after half an hour or more.
const again = 100 * time.Millisecond

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// A viewer prints a line whenever the LLMAutoScaler says something new.
type viewer struct {
	out      io.Writer
	inFlight func() float64
	begin    time.Time
	last     string
}

// watch prints until the context ends, over as many watches as it takes.
func (v *viewer) watch(ctx context.Context, c client.WithWatch) error {
	v.begin = time.Now()
	fmt.Fprintf(v.out, "%6s  %8s  %7s  %7s  %-8s %s\n", "TIME", "INFLIGHT", "CURRENT", "DESIRED", "VERDICT", "WHY")
	for {
		if err := v.one(ctx, c); err != nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(again):
		}
	}
}

// one prints until a watch ends.
func (v *viewer) one(ctx context.Context, c client.WithWatch) error {
	events, err := c.Watch(ctx, &v1alpha1.LLMAutoScalerList{}, client.InNamespace("models"))
	if err != nil {
		return err
	}
	defer events.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, more := <-events.ResultChan():
			if !more {
				return nil
			}
			if las, ok := e.Object.(*v1alpha1.LLMAutoScaler); ok {
				v.show(&las.Status)
			}
		}
	}
}

// show prints a status, unless it says what the one before said: a watch begins with what is there.
func (v *viewer) show(s *v1alpha1.LLMAutoScalerStatus) {
	d := s.LastDecision
	if d == nil || s.CurrentReplicas == nil || s.DesiredReplicas == nil {
		return
	}
	said := fmt.Sprint(d.Verdict, d.Code, *s.CurrentReplicas, *s.DesiredReplicas)
	if said == v.last {
		return
	}
	v.last = said
	fmt.Fprintf(v.out, "%6s  %8.0f  %7d  %7d  %-8s %s\n", time.Since(v.begin).Round(time.Second), v.inFlight(),
		*s.CurrentReplicas, *s.DesiredReplicas, d.Verdict, d.Reason)
}
