package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
)

// TestRegressionTheOneThatHasTheTargetIsNamed: of several that were there before, whichever a cache lists first was said to scale the
// target. Its order is another each time, so that what lost had an event, a log line and another status in each round.
func TestRegressionTheOneThatHasTheTargetIsNamed(t *testing.T) {
	w := newWorld(t)
	inner, ok := w.client.(client.WithWatch)
	require.True(t, ok)
	lists, copied := 0, false
	w.config.Client = interceptor.NewClient(inner, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		var given client.ListOptions
		given.ApplyOptions(opts)
		copied = copied || given.UnsafeDisableDeepCopy == nil || !*given.UnsafeDisableDeepCopy
		err := c.List(ctx, list, opts...)
		if lists++; lists%2 == 0 {
			all, ok := list.(*stored.LLMAutoScalerList)
			require.True(t, ok)
			slices.Reverse(all.Items)
		}
		return err
	}})
	w.restart()
	w.deployment(2)
	w.queue(5)
	for _, name := range []string{"c", "b", "a"} { // c is the oldest
		w.apply(strings.Replace(chat, "name: chat}", "name: "+name+"}", 1))
		w.now = w.now.Add(time.Minute)
	}
	w.round("c")
	w.round("a")
	for len(w.events.Events) > 0 {
		<-w.events.Events
	}
	written := w.statuses
	for range 6 {
		las := w.round("a")
		ready := meta.FindStatusCondition(las.Status.Conditions, k8s.ConditionReady)
		require.Equal(t, "LLMAutoScaler c scales Deployment models/chat already", ready.Message)
	}
	require.Empty(t, w.events.Events)
	require.False(t, copied, "any number may have the target, each with a large spec")
	require.Equal(t, written, w.statuses)
}
