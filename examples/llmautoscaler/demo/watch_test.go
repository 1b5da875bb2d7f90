package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// TestWatchGoesOn after the API server has ended it, and says nothing twice.
func TestWatchGoesOn(t *testing.T) {
	status := func(desired int32) *v1alpha1.LLMAutoScaler {
		current := int32(1)
		return &v1alpha1.LLMAutoScaler{Status: v1alpha1.LLMAutoScalerStatus{
			CurrentReplicas: &current, DesiredReplicas: &desired, LastDecision: &v1alpha1.Decision{Verdict: "Up", Reason: "because"},
		}}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watches := [][]*v1alpha1.LLMAutoScaler{{status(2)}, {}, {status(2), status(3)}}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Watch: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) (watch.Interface, error) {
			w := watch.NewFakeWithChanSize(2, false)
			if len(watches) == 0 {
				cancel()
				return w, nil
			}
			for _, las := range watches[0] {
				w.Add(las)
			}
			watches = watches[1:]
			w.Stop()
			return w, nil
		},
	}).Build()
	var out bytes.Buffer
	v := &viewer{out: &out, inFlight: func() float64 { return 7 }}
	require.NoError(t, v.watch(ctx, c))
	require.Empty(t, watches)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3, out.String())
	require.Equal(t, "7 1 2 Up because", strings.Join(strings.Fields(lines[1])[1:], " "))
	require.Equal(t, "7 1 3 Up because", strings.Join(strings.Fields(lines[2])[1:], " "))
}
