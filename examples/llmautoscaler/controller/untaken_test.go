package controller_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// refusing is a metadata client whose requests of a verb are refused.
type refusing struct {
	metadata.ResourceInterface

	verb *string
}

func (m refusing) Resource(schema.GroupVersionResource) metadata.Getter { return m }

func (m refusing) Namespace(namespace string) metadata.ResourceInterface {
	inner, _ := m.ResourceInterface.(metadataGetter)
	return refusing{inner.Namespace(namespace), m.verb}
}

func (m refusing) refused(verb, name string) error {
	if *m.verb == verb {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "llmautoscalers"}, name, errors.New("no rule allows "+verb))
	}
	return nil
}

func (m refusing) Get(ctx context.Context, name string, o metav1.GetOptions, sub ...string) (*metav1.PartialObjectMetadata, error) {
	if err := m.refused("get", name); err != nil {
		return nil, err
	}
	return m.ResourceInterface.Get(ctx, name, o, sub...)
}

func (m refusing) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, o metav1.PatchOptions, sub ...string) (*metav1.PartialObjectMetadata, error) {
	if err := m.refused("patch", name); err != nil {
		return nil, err
	}
	return m.ResourceInterface.Patch(ctx, name, kind, data, o, sub...)
}

// TestRegressionStateThatCannotBeTakenOverIsTold: who may not read or write it had no rounds after an edit, and stayed Ready.
func TestRegressionStateThatCannotBeTakenOverIsTold(t *testing.T) {
	const kept = k8s.AnnotationPrefix + "/state-realtime-cron"
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	for _, verb := range []string{"get", "patch"} {
		t.Run(verb, func(t *testing.T) {
			refused := ""
			w := newWorld(t)
			w.config.Metadata = refusing{metadataGetter{client: w.client}, &refused}
			w.restart()
			w.deployment(2)
			w.apply(long)
			w.queue(20)
			w.round("chat")
			w.round("chat")
			require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
			scaled := w.now
			for len(w.events.Events) > 0 {
				<-w.events.Events
			}
			refused = verb
			w.apply(long + withCron)
			for range 3 {
				_, err := w.ctl.Reconcile(t.Context(), request("chat"))
				require.ErrorContains(t, err, "no rule allows "+verb, "it is tried again soon")
				las := w.get("chat")
				require.Equal(t, "False StateNotStored", condition(las, k8s.ConditionReady))
				require.Contains(t, meta.FindStatusCondition(las.Status.Conditions, k8s.ConditionReady).Message, "no rule allows "+verb)
				require.EqualValues(t, 2, las.Status.ObservedGeneration)
				require.NotContains(t, las.Annotations, kept)
			}
			require.Len(t, w.events.Events, 1)
			require.Contains(t, <-w.events.Events, "StateNotStored")

			refused = ""
			las := w.round("chat")
			require.Equal(t, "True Ready", condition(las, k8s.ConditionReady))
			require.Contains(t, las.Annotations, kept)
			require.Len(t, las.Annotations, 1)
			for w.targets["chat"].Spec.Replicas == 3 && w.now.Sub(scaled) < 15*time.Minute {
				w.round("chat")
			}
			require.InDelta(t, 10*time.Minute, w.now.Sub(scaled), float64(time.Minute), "the cooldown goes on")
		})
	}
}
