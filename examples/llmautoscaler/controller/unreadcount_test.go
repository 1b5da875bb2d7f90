package controller_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// overloaded is a scale client whose API server has no time for reads while busy is set.
type overloaded struct {
	scalesOf

	busy *bool
}

func (o overloaded) Scales(string) scale.ScaleInterface { return o }

func (o overloaded) Get(ctx context.Context, resource schema.GroupResource, name string, options metav1.GetOptions) (*autoscalingv1.Scale, error) {
	if *o.busy {
		return nil, apierrors.NewTooManyRequests("overloaded", 1)
	}
	return o.scalesOf.Get(ctx, resource, name, options)
}

// TestRegressionACountThatCannotBeReadIsNoNewCount: where an API server answered every other read of /scale, the status was written
// in each round, of each object, beyond the limit for what comes and goes: the most writes for who could bear the least.
func TestRegressionACountThatCannotBeReadIsNoNewCount(t *testing.T) {
	busy := false
	w := newWorld(t)
	w.config.Scales = k8s.NewScales(overloaded{scalesOf{w}, &busy}, w.config.Mapper)
	w.restart()
	w.deployment(2)
	w.apply(chat)
	w.queue(5)
	w.round("chat")
	before, began := w.statuses, w.now
	for i := range 120 {
		busy = i%2 == 0
		w.round("chat")
	}
	minutes := w.now.Sub(began).Minutes()
	require.LessOrEqual(t, float64(w.statuses-before), 5+2*minutes, "in %.0f minutes", minutes)
	require.Greater(t, float64(w.statuses-before), minutes)

	for _, replicas := range []int32{3, 4, 3, 4} { // changed while nobody could read it
		busy = true
		w.round("chat")
		busy = false
		w.deployment(replicas)
		las := w.round("chat")
		require.NotNil(t, las.Status.CurrentReplicas)
		require.Equal(t, replicas, *las.Status.CurrentReplicas)
	}
}
