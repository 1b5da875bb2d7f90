package k8s_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/tools/record"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// A HorizontalPodAutoscaler on the same target takes every write back: it is named, the target is left alone, and it goes
// on when the other one is gone.
func TestContended(t *testing.T) {
	c, clock, r := newCluster(3), &clock{now: start}, record.NewFakeRecorder(1000)
	written := metav1.NewTime(start)
	var template, count metav1.FieldsV1
	require.NoError(t, template.UnmarshalJSON([]byte(`{"f:spec":{"f:template":{}}}`)))
	require.NoError(t, count.UnmarshalJSON([]byte(`{"f:spec":{"f:replicas":{}}}`)))
	scheme := metadatafake.NewTestScheme()
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	client := metadatafake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: target.APIVersion, Kind: target.Kind},
		ObjectMeta: metav1.ObjectMeta{Namespace: target.Namespace, Name: target.Name, ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kubectl", Operation: "Apply", FieldsV1: &template},
			{Manager: "kube-controller-manager", Subresource: "scale", Operation: "Update", Time: &written, FieldsV1: &count},
		}},
	})
	l := newLoop(t, c, &observer{value: 50}, clock, func(config *k8s.LoopConfig) {
		config.Recorder, config.LastWriter = r, k8s.NewLastWriter(client, c.Mapper())
	})
	var status []metav1.Condition
	rounds, contended := 0, 0
	for range 4 * 60 { // an hour
		o, err := l.Tick(context.Background())
		k8s.SetConditions(&status, &o, 1)
		if condition := meta.FindStatusCondition(status, k8s.ConditionContended); condition != nil && condition.Status == metav1.ConditionTrue {
			contended++
			require.Error(t, err)
			require.Equal(t, "kube-controller-manager (scale) at 2026-03-02T08:00:00Z took back the last 3 writes of Deployment default/llama: left alone until "+
				condition.Message[len(condition.Message)-len("2026-03-02T08:09:30Z; one of the two has to go"):], condition.Message)
			require.Equal(t, k8s.ReasonContended, meta.FindStatusCondition(status, k8s.ConditionReady).Reason)
		}
		rounds++
		if c.Replicas("llama") != 3 { // what the other one does
			c.Targets["llama"].Spec.Replicas = 3
			c.Touch("llama")
		}
		clock.now = clock.now.Add(15 * time.Second)
	}
	require.LessOrEqual(t, len(c.Written), 3+4, "5, 10, 20 minutes")
	require.Greater(t, contended, rounds/2)
	events := 0
	for _, text := range told(r) {
		if len(text) > 17 && text[:17] == "Warning Contended" {
			events++
		}
	}
	require.Positive(t, events)
	require.LessOrEqual(t, events, 7, "not one a round")

	for range 8 * 60 { // the other one is gone
		o, _ := l.Tick(context.Background())
		k8s.SetConditions(&status, &o, 1)
		clock.now = clock.now.Add(15 * time.Second)
	}
	require.EqualValues(t, 8, c.Replicas("llama"))
	require.True(t, meta.IsStatusConditionFalse(status, k8s.ConditionContended))
}
