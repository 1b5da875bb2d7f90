package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/keda"
)

// versioned is a clientset whose ConfigMaps have versions, as those of an API server: it refuses what was written for
// another one, and counts that.
func versioned() (kube *fake.Clientset, conflicts *int) {
	kube, conflicts = fake.NewClientset(), new(int)
	version := 1
	kube.PrependReactor("patch", "configmaps", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		patch, ok := action.(clienttesting.PatchAction)
		if !ok {
			return false, nil, nil
		}
		var m corev1.ConfigMap
		if err := json.Unmarshal(patch.GetPatch(), &m); err != nil {
			return true, nil, err
		}
		object, err := kube.Tracker().Get(action.GetResource(), action.GetNamespace(), patch.GetName())
		if err != nil {
			return true, nil, err
		}
		now, ok := object.(*corev1.ConfigMap)
		if !ok {
			return true, nil, errors.New("no ConfigMap")
		}
		if m.ResourceVersion != now.ResourceVersion {
			*conflicts++
			return true, nil, apierrors.NewConflict(corev1.Resource("configmaps"), patch.GetName(), errors.New("it has changed"))
		}
		version++
		now = now.DeepCopy()
		now.ResourceVersion = strconv.Itoa(version)
		maps.Copy(now.Data, m.Data)
		return true, now, kube.Tracker().Update(action.GetResource(), now, action.GetNamespace())
	})
	return kube, conflicts
}

// TestTriggersOfOneScaledObjectShareAStore: they are due together, and none loses to another.
func TestTriggersOfOneScaledObjectShareAStore(t *testing.T) {
	kube, conflicts := versioned()
	p := &process{options: &options{namespace: system}, kube: kube}
	ref := keda.Ref{Namespace: models, Name: "chat"}
	var all []k8s.Store
	for range 12 {
		store, err := p.store(ref)
		require.NoError(t, err)
		all = append(all, store)
	}
	old := make([][]byte, len(all))
	for round := range 3 {
		for i, store := range all { // they look at what there is,
			data, err := store.Load(t.Context(), fmt.Sprint(i))
			require.NoError(t, err)
			require.Equal(t, old[i], data)
		}
		for i, store := range all { // and then store what they came to
			state := fmt.Appendf(nil, "%d of round %d", i, round)
			require.NoError(t, store.Save(t.Context(), fmt.Sprint(i), old[i], state))
			old[i] = state
		}
	}
	require.Zero(t, *conflicts)

	other, err := p.store(keda.Ref{Namespace: models, Name: "other"})
	require.NoError(t, err)
	data, err := other.Load(t.Context(), "0")
	require.NoError(t, err)
	require.Empty(t, data, "another ScaledObject has another")
	runtime.KeepAlive(all)
	runtime.KeepAlive(other)
	eventually(t, func() error {
		runtime.GC()
		p.stores.mu.Lock()
		defer p.stores.mu.Unlock()
		if n := len(p.stores.all); n > 0 {
			return fmt.Errorf("%d stores of triggers that are gone", n)
		}
		return nil
	})
}

// An emptyManager has a cache without ScaledObjects, and nothing else.
type emptyManager struct{ manager.Manager }

func (emptyManager) GetCache() cache.Cache { return emptyCache{} }

type emptyCache struct{ cache.Cache }

func (emptyCache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

// TestSweepGoesOn: a state that cannot be removed does not keep the others, and one that is gone already is no failure.
func TestSweepGoesOn(t *testing.T) {
	kube := fake.NewClientset()
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err := kube.CoreV1().ConfigMaps(system).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: statePrefix + name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	kube.PrependReactor("delete", "configmaps", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		d, ok := action.(clienttesting.DeleteAction)
		require.True(t, ok)
		switch d.GetName() {
		case statePrefix + "a":
			return true, nil, apierrors.NewNotFound(corev1.Resource("configmaps"), d.GetName())
		case statePrefix + "b":
			return true, nil, apierrors.NewForbidden(corev1.Resource("configmaps"), d.GetName(), errors.New("a rule of somebody's"))
		}
		return false, nil, nil
	})
	sweep := &process{options: &options{namespace: system}, logger: slog.New(slog.DiscardHandler), manager: emptyManager{}, kube: kube}
	err := sweep.sweep(t.Context(), time.Now())
	require.ErrorContains(t, err, "ConfigMap "+system+"/"+statePrefix+"b: ")
	require.NotContains(t, err.Error(), statePrefix+"a")
	left, err := kube.CoreV1().ConfigMaps(system).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 2, "c and d are gone")
}

// An uncopiedCache has a cache of objects of which none may be copied.
type uncopiedCache struct {
	cache.Cache
	t *testing.T
}

func (c uncopiedCache) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	require.NotNil(c.t, o.UnsafeDisableDeepCopy)
	require.True(c.t, *o.UnsafeDisableDeepCopy)
	return nil
}

type uncopiedManager struct {
	manager.Manager
	cache uncopiedCache
}

func (m uncopiedManager) GetCache() cache.Cache { return m.cache }

// TestRegressionSweepCopiesNoScaledObjects: it copied all that the cache has at once, every ten minutes.
func TestRegressionSweepCopiesNoScaledObjects(t *testing.T) {
	m := uncopiedManager{cache: uncopiedCache{t: t}}
	sweep := &process{options: &options{namespace: system}, logger: slog.New(slog.DiscardHandler), manager: m, kube: fake.NewClientset()}
	require.NoError(t, sweep.sweep(t.Context(), time.Now()))
}

// TestSweepLooksAtAFewAtATime, as ConfigMaps may have 1 MiB each, and at all of them.
func TestSweepLooksAtAFewAtATime(t *testing.T) {
	kube := fake.NewClientset()
	pages := [][]string{{"a", "b"}, {}, {"c"}}
	for _, name := range slices.Concat(pages...) {
		_, err := kube.CoreV1().ConfigMaps(system).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: statePrefix + name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	var asked []metav1.ListOptions
	var fails error
	kube.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, k8sruntime.Object, error) {
		list, ok := action.(clienttesting.ListActionImpl)
		require.True(t, ok)
		asked = append(asked, list.ListOptions)
		page, _ := strconv.Atoi(list.ListOptions.Continue)
		if page == len(pages)-1 && fails != nil {
			return true, nil, fails
		}
		answer := &corev1.ConfigMapList{}
		for _, name := range pages[page] {
			answer.Items = append(answer.Items, corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: statePrefix + name}})
		}
		if page < len(pages)-1 {
			answer.Continue = strconv.Itoa(page + 1)
		}
		return true, answer, nil
	})
	left := func() (names []string) {
		for _, name := range slices.Concat(pages...) {
			if _, err := kube.CoreV1().ConfigMaps(system).Get(t.Context(), statePrefix+name, metav1.GetOptions{}); err == nil {
				names = append(names, name)
			}
		}
		return names
	}
	sweep := &process{options: &options{namespace: system}, logger: slog.New(slog.DiscardHandler), manager: emptyManager{}, kube: kube}
	fails = errors.New("the list has expired")
	require.ErrorIs(t, sweep.sweep(t.Context(), time.Now()), fails)
	require.Equal(t, []string{"c"}, left(), "what was seen was removed")
	fails, asked = nil, nil
	require.NoError(t, sweep.sweep(t.Context(), time.Now()))
	require.Empty(t, left())
	require.Equal(t, []metav1.ListOptions{{Limit: sweepPage}, {Limit: sweepPage, Continue: "1"}, {Limit: sweepPage, Continue: "2"}}, asked)
}
