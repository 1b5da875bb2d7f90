package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
)

// flaky is an API server that refuses statuses while down is set.
type flaky struct {
	client.Client
	down *bool
}

func (f flaky) Status() client.SubResourceWriter { return flakyStatus{f.Client.Status(), f.down} }

type flakyStatus struct {
	client.SubResourceWriter
	down *bool
}

func (f flakyStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if *f.down {
		return errors.New("etcdserver: request timed out")
	}
	return f.SubResourceWriter.Patch(ctx, o, p, opts...)
}

// TestTheCooldownOfAnotherTargetIsNotKeptThoughAStatusWasNotWritten: only the round that finds another target says so. Where its status
// could not be written, lastScaleTime stayed that of the former target, and its cooldown came back with an edit.
func TestTheCooldownOfAnotherTargetIsNotKeptThoughAStatusWasNotWritten(t *testing.T) {
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	down := false
	w := newWorld(t)
	w.config.Client = flaky{w.client, &down}
	w.restart()
	w.deployment(2)
	w.apply(long)
	w.queue(20)
	w.round("chat")
	w.round("chat")
	require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
	w.deployment(2)
	w.targets["chat"].UID, w.targets["chat"].ResourceVersion = "another", "77"
	began := w.now
	down = true
	w.round("chat")
	down = false
	w.apply(strings.Replace(long, "maxReplicas: 8", "maxReplicas: 9", 1))
	for w.targets["chat"].Spec.Replicas == 2 && w.now.Sub(began) < 15*time.Minute {
		w.round("chat")
	}
	require.Less(t, w.now.Sub(began), 2*time.Minute)
}

// TestTheTimeOfAChangeIsSaidLater: where the status of the round that scales cannot be written, the next one says when it was.
func TestTheTimeOfAChangeIsSaidLater(t *testing.T) {
	down := false
	w := newWorld(t)
	w.config.Client = flaky{w.client, &down}
	w.restart()
	w.deployment(2)
	w.apply(chat)
	w.queue(20)
	w.round("chat")
	down = true
	w.round("chat")
	require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
	down = false
	for range 3 {
		w.round("chat")
	}
	las := &stored.LLMAutoScaler{}
	require.NoError(t, w.client.Get(t.Context(), types.NamespacedName{Namespace: ns, Name: "chat"}, las))
	require.NotNil(t, las.Status.LastScaleTime, "it was scaled")
}
