package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/examples/llmautoscaler/controller"
	"github.com/inferscale/inferscale/examples/llmautoscaler/webhook"
)

// An others is a cluster's other autoscalers, or why they cannot be listed, by kind.
type others struct {
	client.Reader

	objects map[string][]string
	errs    map[string]error
}

func (o others) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	all := list.(*unstructured.UnstructuredList)
	kind := all.GroupVersionKind().Kind
	for _, text := range o.objects[kind] {
		var one unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(text), &one.Object); err != nil {
			return err
		}
		all.Items = append(all.Items, one)
	}
	return o.errs[kind]
}

// TestOtherAutoscalers refuses what would fight for ever, and warns of what writes nothing.
func TestOtherAutoscalers(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	const (
		hpa    = "HorizontalPodAutoscalerList"
		keda   = "ScaledObjectList"
		mine   = "metadata: {name: theirs}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}}"
		short  = "metadata: {name: theirs}\nspec: {scaleTargetRef: {name: chat}}"
		paused = `metadata: {name: theirs, annotations: {autoscaling.keda.sh/paused: "true"}}` + "\nspec: {scaleTargetRef: {name: chat}}"
		goes   = "metadata: {name: theirs, deletionTimestamp: '2026-01-15T08:00:00Z'}\nspec: {scaleTargetRef: {name: chat}}"
		other  = "metadata: {name: theirs}\nspec: {scaleTargetRef: {apiVersion: apps/v1, kind: StatefulSet, name: chat}}"
	)
	noMatch := &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "horizontalpodautoscalers"}, "", errors.New("no"))
	dry, pause := "dryRun: true\n  "+thresholds, "paused: true\n  "+thresholds
	for name, tt := range map[string]struct {
		others        others
		before, after string
		refused, warn string
	}{
		"none":                 {others: others{errs: map[string]error{keda: noMatch}}, after: thresholds},
		"an HPA":               {others: others{objects: map[string][]string{hpa: {mine}}}, after: thresholds, refused: "is scaled by HorizontalPodAutoscaler theirs already: remove it, or set spec.dryRun or spec.paused"},
		"a ScaledObject":       {others: others{objects: map[string][]string{keda: {mine}, hpa: {mine}}}, after: thresholds, refused: "is scaled by ScaledObject theirs already"},
		"KEDA's own defaults":  {others: others{objects: map[string][]string{keda: {short}}}, after: thresholds, refused: "ScaledObject theirs"},
		"a paused one":         {others: others{objects: map[string][]string{keda: {paused}}}, after: thresholds, warn: "ScaledObject theirs already: only one of the two may write"},
		"one behind a paused":  {others: others{objects: map[string][]string{keda: {paused, paused, mine}}}, after: thresholds, refused: "ScaledObject theirs"},
		"an HPA behind it":     {others: others{objects: map[string][]string{keda: {paused}, hpa: {mine}}}, after: thresholds, refused: "HorizontalPodAutoscaler theirs", warn: "ScaledObject theirs"},
		"one that goes":        {others: others{objects: map[string][]string{keda: {goes}}}, after: thresholds},
		"another target":       {others: others{objects: map[string][]string{hpa: {other}}}, after: thresholds},
		"a dry run":            {others: others{objects: map[string][]string{hpa: {mine}}}, after: dry, warn: "only one of the two may write"},
		"paused":               {others: others{objects: map[string][]string{hpa: {mine}}}, after: pause, warn: "only one of the two may write"},
		"no rights":            {others: others{errs: map[string]error{hpa: forbidden}}, after: thresholds, warn: "could not be found out"},
		"as it was":            {others: others{objects: map[string][]string{hpa: {mine}}}, before: thresholds, after: "intervalSeconds: 30\n  " + thresholds},
		"the end of a dry run": {others: others{objects: map[string][]string{hpa: {mine}}}, before: dry, after: thresholds, refused: "HorizontalPodAutoscaler theirs"},
		"the end of a pause":   {others: others{objects: map[string][]string{hpa: {mine}}}, before: pause, after: thresholds, refused: "HorizontalPodAutoscaler theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			v := &webhook.Validator{Others: tt.others, Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build()}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			after := object(t, "mine", deployment, tt.after)
			warnings, err := v.ValidateCreate(ctx, after)
			if tt.before != "" {
				after.Generation = 2
				warnings, err = v.ValidateUpdate(ctx, object(t, "mine", deployment, tt.before), after)
			}
			if tt.refused == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, tt.refused)
			}
			if tt.warn == "" {
				require.Empty(t, warnings)
			} else {
				require.Len(t, warnings, 1)
				require.Contains(t, warnings[0], tt.warn)
			}
		})
	}
}

// A crowd has so many ScaledObjects in a namespace, of which the last one scales chat.
type crowd struct {
	client.Reader

	count                int
	reading, most, pages atomic.Int32
}

func (c *crowd) List(_ context.Context, list client.ObjectList, with ...client.ListOption) error {
	c.most.Store(max(c.most.Load(), c.reading.Add(1)))
	defer c.reading.Add(-1)
	c.pages.Add(1)
	all := list.(*unstructured.UnstructuredList)
	var o client.ListOptions
	o.ApplyOptions(with)
	from, _ := strconv.Atoi(o.Continue)
	to := c.count
	if o.Limit > 0 {
		to = min(to, from+int(o.Limit))
	}
	if all.GroupVersionKind().Kind != "ScaledObjectList" {
		return nil
	}
	for i := from; i < to; i++ {
		name := "other"
		if i == c.count-1 {
			name = "chat"
		}
		one := unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"scaleTargetRef": map[string]any{"name": name}}}}
		one.SetName(fmt.Sprint(i))
		all.Items = append(all.Items, one)
	}
	if len(all.Items) > 5 {
		return fmt.Errorf("%d at once, of a megabyte each", len(all.Items))
	}
	if to < c.count {
		all.SetContinue(strconv.Itoa(to))
	}
	return nil
}

// TestOthersAreReadAFewAtATime: a namespace has a hundred ScaledObjects, of a megabyte each, and twenty reviews look at them at once.
func TestOthersAreReadAFewAtATime(t *testing.T) {
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	many := &crowd{count: 100}
	v := &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build(), Others: many}
	after := object(t, "mine", deployment, thresholds)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			_, err := v.ValidateCreate(t.Context(), after.DeepCopyObject().(*stored.LLMAutoScaler))
			assert.ErrorContains(t, err, "is scaled by ScaledObject 99 already")
		})
	}
	wg.Wait()
	assert.Equal(t, int32(1), many.most.Load(), "one page at a time")
	assert.Equal(t, int32(20*20), many.pages.Load())
}

// TestACrowdIsReadInPart: of more than a hundred ScaledObjects the rest is not read, and a warning says so.
func TestACrowdIsReadInPart(t *testing.T) {
	many := &crowd{count: 101}
	warnings, err := reviewer(t, many).ValidateCreate(t.Context(), object(t, "mine", deployment, thresholds))
	require.NoError(t, err)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "whether a ScaledObject scales it too could not be found out: namespace models has more than 100")
	require.Equal(t, int32(20+1), many.pages.Load(), "and one of HorizontalPodAutoscalers")
}

// A gate holds those who list ScaledObjects of namespaces that begin with "held", until it is opened.
type gate struct {
	client.Reader

	entered chan string
	open    chan struct{}
}

func (g gate) List(_ context.Context, list client.ObjectList, with ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(with)
	if list.(*unstructured.UnstructuredList).GroupVersionKind().Kind == "ScaledObjectList" && strings.HasPrefix(o.Namespace, "held") {
		g.entered <- o.Namespace
		<-g.open
	}
	return nil
}

func reviewer(t *testing.T, others client.Reader) *webhook.Validator {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, stored.AddToScheme(scheme))
	return &webhook.Validator{Reader: fake.NewClientBuilder().WithScheme(scheme).WithIndex(&stored.LLMAutoScaler{}, controller.TargetIndex, controller.Index).Build(), Others: others}
}

// soon receives within 10 s.
func soon[T any](t *testing.T, from <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-from:
	case <-time.After(10 * time.Second):
		require.Fail(t, what)
	}
	return got
}

// TestANamespaceWaitsForItself alone: while reviews of one namespace read and wait, those of another are answered. One
// whose context ends while it waits is answered with a warning. Four namespaces are read at once.
func TestANamespaceWaitsForItself(t *testing.T) {
	g := gate{entered: make(chan string, 100), open: make(chan struct{})}
	v := reviewer(t, g)
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	opened := sync.OnceFunc(func() { close(g.open) })
	t.Cleanup(opened)
	review := func(ctx context.Context, namespace string) <-chan admission.Warnings {
		after, done := object(t, "mine", deployment, thresholds), make(chan admission.Warnings, 1)
		after.Namespace = namespace
		wg.Go(func() {
			warnings, err := v.ValidateCreate(ctx, after)
			assert.NoError(t, err)
			done <- warnings
		})
		return done
	}
	var all []<-chan admission.Warnings
	for range 60 {
		all = append(all, review(t.Context(), "held-0"))
	}
	soon(t, g.entered, "nobody reads")
	require.Empty(t, soon(t, review(t.Context(), "other"), "another namespace waits"))

	ended, cancel := context.WithCancel(t.Context())
	late := review(ended, "held-0")
	cancel()
	warnings := soon(t, late, "one whose context has ended waits")
	require.NotEmpty(t, warnings)
	require.Contains(t, warnings[0], "could not be found out: context canceled")

	for i := range 8 {
		all = append(all, review(t.Context(), fmt.Sprintf("held-%d", i+1)))
	}
	for range 3 {
		soon(t, g.entered, "four namespaces are not read at once")
	}
	ended, cancel = context.WithCancel(t.Context())
	late = review(ended, "last")
	cancel()
	warnings = soon(t, late, "one whose context has ended waits for the others")
	require.NotEmpty(t, warnings)
	require.Contains(t, warnings[0], "context canceled")
	require.Empty(t, g.entered, "more than four are read at once")

	opened()
	for _, done := range all {
		require.Empty(t, soon(t, done, "a review is not answered"))
	}
}
