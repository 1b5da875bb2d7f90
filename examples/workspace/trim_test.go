package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/controller"
)

// fill fills metadata with more than a megabyte.
func fill(m *metav1.ObjectMeta) {
	m.Namespace, m.Name, m.UID, m.ResourceVersion, m.Generation = "a", "b", "1", "2", 3
	m.Labels = map[string]string{v1alpha1.NameLabel: "b"}
	m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": strings.Repeat("x", 200<<10)}
	for i := range 4000 {
		m.Labels[fmt.Sprintf("%0250d", i)] = strings.Repeat("v", 63)
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{Kind: "Pod", Name: strings.Repeat("o", 200), UID: types.UID(fmt.Sprint(i))})
		m.Finalizers = append(m.Finalizers, fmt.Sprint("f", i))
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{Manager: fmt.Sprint("m", i)})
	}
}

// ownedFields are the fields of a Deployment that the controller has applied, as far as these tests need them.
const ownedFields = `{"f:metadata":{"f:labels":{"f:` + v1alpha1.NameLabel + `":{}},"f:ownerReferences":{"k:{\"uid\":\"u\"}":{}}},"f:spec":{"f:replicas":{}}}`

// fullDeployment returns a Deployment of a workspace in which everything is full that somebody else can fill.
func fullDeployment(isController bool) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	fill(&d.ObjectMeta)
	d.OwnerReferences = append(d.OwnerReferences, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind, Name: "b", UID: "u", Controller: &isController,
	})
	d.ManagedFields = append(d.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: controller.FieldOwner, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "apps/v1",
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(ownedFields),
	})
	d.Spec.Replicas = new(int32(4))
	d.Status = appsv1.DeploymentStatus{ObservedGeneration: 3, Replicas: 4, UpdatedReplicas: 4, AvailableReplicas: 4}
	return d
}

func sizeOf(t *testing.T, o any) int {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	return len(text)
}

// TestObjectsThatAreFullTakeLittleMemory: what the cache keeps of those whose metadata have a megabyte and more.
func TestObjectsThatAreFullTakeLittleMemory(t *testing.T) {
	w := &v1alpha1.Workspace{}
	fill(&w.ObjectMeta)
	w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = "2"
	kept, err := trim(w)
	require.NoError(t, err)
	require.Less(t, sizeOf(t, kept), 1<<10)
	n, err := kept.(*v1alpha1.Workspace).AnnotatedNodeCount()
	require.NoError(t, err)
	require.EqualValues(t, 2, n)
	w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = strings.Repeat("9", 200<<10)
	kept, err = trim(w)
	require.NoError(t, err)
	require.Less(t, sizeOf(t, kept), 1<<10)
	_, err = kept.(*v1alpha1.Workspace).AnnotatedNodeCount()
	require.Error(t, err)

	gone := toolscache.DeletedFinalStateUnknown{Key: "a/b"}
	kept, err = trim(gone)
	require.NoError(t, err)
	require.Equal(t, gone, kept)
}

// TestOfADeploymentItIsKeptWhatIsApplied, and what is read of it.
func TestOfADeploymentItIsKeptWhatIsApplied(t *testing.T) {
	d := fullDeployment(true)
	before, err := appsv1ac.ExtractDeployment(d.DeepCopy(), controller.FieldOwner)
	require.NoError(t, err)
	kept, err := trim(d)
	require.NoError(t, err)
	require.Less(t, sizeOf(t, kept), 2<<10)
	after, err := appsv1ac.ExtractDeployment(d, controller.FieldOwner)
	require.NoError(t, err)
	require.True(t, equality.Semantic.DeepEqual(before, after))
	require.True(t, metav1.IsControlledBy(d, &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{UID: "u"}}))
	require.EqualValues(t, 4, d.Status.AvailableReplicas)

	d = fullDeployment(true)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{strings.Repeat("x", mostDeployment)}}}
	_, err = trim(d)
	require.NoError(t, err)
	require.Less(t, sizeOf(t, d), 2<<10)
	require.True(t, metav1.IsControlledBy(d, &v1alpha1.Workspace{ObjectMeta: metav1.ObjectMeta{UID: "u"}}))
	after, err = appsv1ac.ExtractDeployment(d, controller.FieldOwner)
	require.NoError(t, err)
	require.Nil(t, after.Spec, "so that it is applied again")
}

// TestRegressionADeploymentOfSomebodyElseTakesLittleMemory: anybody can give a Deployment the label of those that are kept.
func TestRegressionADeploymentOfSomebodyElseTakesLittleMemory(t *testing.T) {
	d := fullDeployment(false)
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: []string{strings.Repeat("x", 200<<10)}}}
	_, err := trim(d)
	require.NoError(t, err)
	require.Less(t, sizeOf(t, d), 1<<10)
	require.Nil(t, metav1.GetControllerOf(d))
}
