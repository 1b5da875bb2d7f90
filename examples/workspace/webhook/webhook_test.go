package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
	"github.com/inferscale/inferscale/examples/workspace/estimate"
	"github.com/inferscale/inferscale/examples/workspace/webhook"
)

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)))
	return scheme
}

// served returns a workspace with inference settings, changed.
func served(change ...func(*v1alpha1.Workspace)) *v1alpha1.Workspace {
	w := &v1alpha1.Workspace{}
	w.TypeMeta = metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.Kind}
	w.Name, w.Namespace = "llama", "default"
	w.Spec.Resource.InstanceType = "Standard_NC24ads_A100_v4"
	w.Spec.Inference = &v1alpha1.InferenceSpec{
		Replicas: new(int32(1)), Preset: &v1alpha1.PresetSpec{Name: "phi-4"},
	}
	for _, f := range change {
		f(w)
	}
	return w
}

func count(text string) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) {
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
		w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation] = text
	}
}

func replicas(n int32) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) { w.Spec.Inference.Replicas = &n }
}

func preferred(nodes ...string) func(*v1alpha1.Workspace) {
	return func(w *v1alpha1.Workspace) { w.Spec.Resource.PreferredNodes = nodes }
}

func noInference(w *v1alpha1.Workspace) { w.Spec.Inference = nil }

func deleting(w *v1alpha1.Workspace) { w.DeletionTimestamp = new(metav1.Now()) }

// request returns the request that an API server sends.
func request(t *testing.T, subresource string, fresh, old any) admission.Request {
	t.Helper()
	r := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Name: "llama", Namespace: "default", SubResource: subresource, Operation: admissionv1.Create,
		Resource: metav1.GroupVersionResource{Group: v1alpha1.Group, Version: v1alpha1.Version, Resource: v1alpha1.Resource},
	}}
	var err error
	r.Object.Raw, err = json.Marshal(fresh)
	require.NoError(t, err)
	if old != nil {
		r.Operation = admissionv1.Update
		r.OldObject.Raw, err = json.Marshal(old)
		require.NoError(t, err)
	}
	return r
}

// patched returns the workspace of a request after the answer's patch.
func patched(t *testing.T, r admission.Request, answer admission.Response) *v1alpha1.Workspace {
	t.Helper()
	require.True(t, answer.Allowed, "%v", answer.Result)
	text, err := json.Marshal(answer.Patches)
	require.NoError(t, err)
	patch, err := jsonpatch.DecodePatch(text)
	require.NoError(t, err)
	out, err := patch.Apply(r.Object.Raw)
	require.NoError(t, err)
	var w v1alpha1.Workspace
	require.NoError(t, json.Unmarshal(out, &w))
	return &w
}

// fixed estimates the same for everything.
type fixed struct {
	n   int32
	err error
}

func (f fixed) Estimate(context.Context, *v1alpha1.Workspace) (int32, error) { return f.n, f.err }

func TestDefaulterWritesTheEstimateOnce(t *testing.T) {
	inStatus := func(n int32) func(*v1alpha1.Workspace) {
		return func(w *v1alpha1.Workspace) { w.Status.Inference = &v1alpha1.InferenceStatus{PerReplicaNodeCount: n} }
	}
	other := func(w *v1alpha1.Workspace) { w.Annotations = map[string]string{"team/owner": "search"} }
	for name, c := range map[string]struct {
		fresh, old *v1alpha1.Workspace
		want       string // empty: none
		warned     bool
	}{
		"created":                                 {fresh: served(), want: "7"},
		"created with another annotation":         {fresh: served(other), want: "7"},
		"created with a number of one's own":      {fresh: served(count("1")), want: "7", warned: true},
		"created with the right number":           {fresh: served(count("7")), want: "7"},
		"created without inference":               {fresh: served(noInference)},
		"created without inference, with number":  {fresh: served(noInference, count("7"))},
		"updated":                                 {fresh: served(count("2")), old: served(count("2")), want: "2"},
		"updated, changed: for the validator":     {fresh: served(count("3")), old: served(count("2")), want: "3"},
		"replaced, lost":                          {fresh: served(), old: served(count("2")), want: "2"},
		"replaced, lost, with another annotation": {fresh: served(other), old: served(count("2")), want: "2"},
		"older than the webhook":                  {fresh: served(), old: served(), want: "7"},
		"older than the webhook, in the status":   {fresh: served(), old: served(inStatus(4)), want: "4"},
		"broken before":                           {fresh: served(count("x")), old: served(count("x")), want: "7", warned: true},
		"inference is new":                        {fresh: served(), old: served(noInference), want: "7"},
		"being deleted":                           {fresh: served(deleting), old: served()},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if c.old != nil {
				old = c.old
			}
			r := request(t, "", c.fresh, old)
			answer := webhook.NewDefaulter(admission.NewDecoder(newScheme(t)), fixed{n: 7}).Handle(t.Context(), r)
			w := patched(t, r, answer)
			got, has := w.Annotations[v1alpha1.PerReplicaNodeCountAnnotation]
			assert.Equal(t, c.want != "", has)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.warned, len(answer.Warnings) > 0, "%q", answer.Warnings)

			// Nothing else is touched.
			delete(w.Annotations, v1alpha1.PerReplicaNodeCountAnnotation)
			before := c.fresh.DeepCopy()
			delete(before.Annotations, v1alpha1.PerReplicaNodeCountAnnotation)
			if len(before.Annotations) == 0 && len(w.Annotations) == 0 {
				before.Annotations, w.Annotations = nil, nil
			}
			want, err := json.Marshal(before)
			require.NoError(t, err)
			have, err := json.Marshal(w)
			require.NoError(t, err)
			assert.JSONEq(t, string(want), string(have))
		})
	}
}

func TestDefaulterRefusesWhatCannotBeEstimated(t *testing.T) {
	decoder := admission.NewDecoder(newScheme(t))
	unknown := served(func(w *v1alpha1.Workspace) { w.Spec.Resource.InstanceType = "Standard_D2" })
	answer := webhook.NewDefaulter(decoder, estimate.NewMemory()).Handle(t.Context(), request(t, "", unknown, nil))
	assert.False(t, answer.Allowed)
	assert.Equal(t, int32(422), answer.Result.Code)
	assert.Contains(t, answer.Result.Message, `spec.resource.instanceType: Unsupported value: "Standard_D2"`)

	answer = webhook.NewDefaulter(decoder, fixed{err: errors.New("price list is down")}).Handle(t.Context(), request(t, "", served(), nil))
	assert.False(t, answer.Allowed)
	assert.Equal(t, int32(500), answer.Result.Code)
	assert.Contains(t, answer.Result.Message, "price list is down")

	answer = webhook.NewDefaulter(decoder, fixed{n: 0}).Handle(t.Context(), request(t, "", served(), nil))
	assert.False(t, answer.Allowed)

	answer = webhook.NewDefaulter(decoder, fixed{n: 1}).Handle(t.Context(), request(t, "", "no object", nil))
	assert.Equal(t, int32(400), answer.Result.Code)
}

func TestValidator(t *testing.T) {
	deprecated := func(w *v1alpha1.Workspace) { w.Spec.Resource.Count = new(int32(3)) }
	for name, c := range map[string]struct {
		fresh, old *v1alpha1.Workspace
		refused    []string
		warned     string
	}{
		"created":                         {fresh: served(count("1"))},
		"created with preferred nodes":    {fresh: served(count("1"), preferred("a"), replicas(2))},
		"created without inference":       {fresh: served(noInference)},
		"created with deprecated count":   {fresh: served(count("1"), deprecated), warned: "spec.resource.count is deprecated"},
		"created, distributed":            {fresh: served(count("2")), warned: "a replica needs 2 nodes"},
		"scaled":                          {fresh: served(count("1"), replicas(5)), old: served(count("1"))},
		"scaled to zero":                  {fresh: served(count("1"), replicas(0)), old: served(count("1"))},
		"inference is new":                {fresh: served(count("1"), replicas(5)), old: served(noInference)},
		"preferred nodes are new":         {fresh: served(count("1"), preferred("a")), old: served(count("1"))},
		"preferred nodes, same replicas":  {fresh: served(count("1"), preferred("a", "b")), old: served(count("1"), preferred("a"))},
		"broken annotation is mended":     {fresh: served(count("1")), old: served(count("x"))},
		"deleted with anything":           {fresh: served(count("x"), replicas(5), preferred("a"), deleting), old: served(count("1"))},
		"preferred nodes, scaled":         {fresh: served(count("1"), replicas(2), preferred("a")), old: served(count("1"), preferred("a")), refused: []string{`spec.resource.preferredNodes: Invalid value: ["a"]`, "from 1 to 2", "cannot be scaled"}},
		"preferred nodes come, scaled":    {fresh: served(count("1"), replicas(2), preferred("a")), old: served(count("1")), refused: []string{"spec.resource.preferredNodes"}},
		"preferred nodes go, scaled":      {fresh: served(count("1"), replicas(2)), old: served(count("1"), preferred("b")), refused: []string{`spec.resource.preferredNodes: Invalid value: ["b"]`}},
		"annotation changed":              {fresh: served(count("2")), old: served(count("1")), refused: []string{`metadata.annotations[workspace.inferscale.io/per-replica-node-count]: Invalid value: "2": it is "1"`}},
		"annotation removed":              {fresh: served(), old: served(count("1")), refused: []string{"metadata.annotations[workspace.inferscale.io/per-replica-node-count]"}},
		"annotation broken":               {fresh: served(count("x")), refused: []string{`"x" is not a whole number`}},
		"created, too many nodes":         {fresh: served(count("65536"), replicas(32768)), refused: []string{"spec.inference.replicas: Invalid value: 32768", "2147483648 nodes"}},
		"scaled, too many nodes":          {fresh: served(count("2"), replicas(2147483647)), old: served(count("2")), refused: []string{"spec.inference.replicas: Invalid value: 2147483647"}},
		"annotation changed and too many": {fresh: served(count("3"), replicas(2147483647)), old: served(count("2")), refused: []string{"metadata.annotations", "spec.inference.replicas"}},
	} {
		t.Run(name, func(t *testing.T) {
			var old any
			if c.old != nil {
				old = c.old
			}
			answer := webhook.NewValidator(admission.NewDecoder(newScheme(t))).Handle(t.Context(), request(t, "", c.fresh, old))
			require.Equal(t, len(c.refused) == 0, answer.Allowed, "%v", answer.Result)
			for _, text := range c.refused {
				assert.Equal(t, int32(422), answer.Result.Code)
				assert.Contains(t, answer.Result.Message, text)
			}
			if c.warned == "" {
				assert.Empty(t, answer.Warnings)
			} else {
				require.Len(t, answer.Warnings, 1)
				assert.Contains(t, answer.Warnings[0], c.warned)
			}
		})
	}
}

// scaleOf returns the Scale of a workspace, as an API server makes it: it says nothing of nodes.
func scaleOf(n int32) *autoscalingv1.Scale {
	return &autoscalingv1.Scale{
		TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{Name: "llama", Namespace: "default"},
		Spec:       autoscalingv1.ScaleSpec{Replicas: n},
	}
}

func TestScaleValidator(t *testing.T) {
	for name, c := range map[string]struct {
		stored  *v1alpha1.Workspace // nil: there is none
		to      int32
		code    int32 // 0: admitted
		refused []string
	}{
		"up":              {stored: served(count("1")), to: 5},
		"down to zero":    {stored: served(count("1"), replicas(5)), to: 0},
		"not yet counted": {stored: served(), to: 5},
		"no inference": {
			stored: served(noInference), to: 3, code: 422,
			refused: []string{"spec.inference: Required value", "cannot be scaled (to 3)"},
		},
		"preferred nodes": {
			stored: served(count("1"), preferred("gpu-1")), to: 2, code: 422,
			refused: []string{`spec.resource.preferredNodes: Invalid value: ["gpu-1"]`, "from 1 to 2"},
		},
		"preferred nodes, to what is there": {
			stored: served(count("1"), preferred("gpu-1")), to: 1, code: 422, refused: []string{"spec.resource.preferredNodes"},
		},
		"too many nodes": {
			stored: served(count("2")), to: 1 << 30, code: 422,
			refused: []string{"spec.inference.replicas: Invalid value: 1073741824", "2147483648 nodes"},
		},
		"gone": {to: 1, code: 404, refused: []string{"not found"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := newScheme(t)
			store := fake.NewClientBuilder().WithScheme(scheme)
			if c.stored != nil {
				store = store.WithObjects(c.stored)
			}
			handler := webhook.NewScaleValidator(admission.NewDecoder(scheme), store.Build())
			answer := handler.Handle(t.Context(), request(t, "scale", scaleOf(c.to), scaleOf(1)))
			require.Equal(t, c.code == 0, answer.Allowed, "%v", answer.Result)
			for _, text := range c.refused {
				assert.Equal(t, c.code, answer.Result.Code)
				assert.Contains(t, answer.Result.Message, text)
			}
		})
	}
}

func TestScaleValidatorRefusesWhenItCannotRead(t *testing.T) {
	scheme := newScheme(t)
	broken := fake.NewClientBuilder().WithScheme(scheme).WithObjects(served(count("1"))).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		},
	}).Build()
	handler := webhook.NewScaleValidator(admission.NewDecoder(scheme), broken)
	answer := handler.Handle(t.Context(), request(t, "scale", scaleOf(2), scaleOf(1)))
	assert.False(t, answer.Allowed)
	assert.Equal(t, int32(500), answer.Result.Code)

	answer = handler.Handle(t.Context(), request(t, "status", scaleOf(2), scaleOf(1)))
	assert.Equal(t, int32(400), answer.Result.Code, "another subresource is a mistake in the configuration")
	answer = handler.Handle(t.Context(), request(t, "scale", served(), scaleOf(1)))
	assert.Equal(t, int32(400), answer.Result.Code, "not a Scale")
}
