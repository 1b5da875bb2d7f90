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
	"github.com/inferscale/inferscale/examples/internal/cluster"
)

// watch prints a line whenever the LLMAutoScaler says something new.
func watch(ctx context.Context, w io.Writer, config *rest.Config, fleet *cluster.Fleet) error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	events, err := c.Watch(ctx, &v1alpha1.LLMAutoScalerList{}, client.InNamespace("models"))
	if err != nil {
		return err
	}
	defer events.Stop()
	begin := time.Now()
	fmt.Fprintf(w, "%6s  %8s  %7s  %7s  %-8s %s\n", "TIME", "INFLIGHT", "CURRENT", "DESIRED", "VERDICT", "WHY")
	last := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, more := <-events.ResultChan():
			if !more {
				return nil
			}
			las, ok := e.Object.(*v1alpha1.LLMAutoScaler)
			if !ok || las.Status.LastDecision == nil || las.Status.CurrentReplicas == nil || las.Status.DesiredReplicas == nil {
				continue
			}
			d := las.Status.LastDecision
			said := fmt.Sprint(d.Verdict, d.Code, *las.Status.CurrentReplicas, *las.Status.DesiredReplicas)
			if said == last {
				continue
			}
			last = said
			fmt.Fprintf(w, "%6s  %8.0f  %7d  %7d  %-8s %s\n", time.Since(begin).Round(time.Second), fleet.InFlight(),
				*las.Status.CurrentReplicas, *las.Status.DesiredReplicas, d.Verdict, d.Reason)
		}
	}
}
