package controller_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
)

// hooked is an API server that does something before it takes a status, or refuses it.
type hooked struct {
	client.Client
	before *func() error
}

func (h hooked) Status() client.SubResourceWriter { return hookedStatus{h.Client.Status(), h.before} }

type hookedStatus struct {
	client.SubResourceWriter
	before *func() error
}

func (h hookedStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if f := *h.before; f != nil {
		*h.before = nil
		if err := f(); err != nil {
			return err
		}
	}
	return h.SubResourceWriter.Patch(ctx, o, p, opts...)
}

// TestTheStatusOfADeletedObjectIsNotThatOfAnother: an object that was made under the name of one that was deleted during its round got
// the status of that one, with its lastScaleTime.
func TestTheStatusOfADeletedObjectIsNotThatOfAnother(t *testing.T) {
	var before func() error
	w := newWorld(t)
	w.config.Client = hooked{w.client, &before}
	w.restart()
	w.deployment(2)
	w.apply(chat)
	w.queue(20)
	w.round("chat")
	before = func() error {
		old := w.get("chat")
		require.NoError(t, w.client.Delete(t.Context(), whole(old)))
		fresh := &stored.LLMAutoScaler{}
		fresh.Name, fresh.Namespace, fresh.Spec = old.Name, old.Namespace, *old.Spec.DeepCopy()
		fresh.Generation, fresh.UID, fresh.CreationTimestamp = 1, "another", metav1.NewTime(w.now)
		return w.client.Create(t.Context(), fresh)
	}
	las := w.round("chat")
	require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas, "the object that is gone has scaled")
	require.EqualValues(t, "another", las.UID)
	require.Empty(t, las.Status.Conditions)
	require.Nil(t, las.Status.LastScaleTime)
	las = w.round("chat")
	require.NotEmpty(t, las.Status.Conditions, "it has a status of its own")
	require.Nil(t, las.Status.LastScaleTime)
}

// TestAConflictOfAStatusIsNoTrouble: it is another object, of which the next round knows.
func TestAConflictOfAStatusIsNoTrouble(t *testing.T) {
	var before func() error
	var said strings.Builder
	w := newWorld(t)
	w.config.Client, w.config.Logger = hooked{w.client, &before}, logTo(&said)
	w.restart()
	w.deployment(2)
	w.apply(chat)
	w.queue(5)
	before = func() error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "llmautoscalers"}, "chat", nil)
	}
	w.round("chat")
	require.NotContains(t, said.String(), "status not written")
	require.NotEmpty(t, w.round("chat").Status.Conditions)
}

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
