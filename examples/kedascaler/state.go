package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/keda"
)

const (
	// statePrefix begins the names of the ConfigMaps that keep the state of triggers in mode replicas.
	statePrefix = "kedascaler-state-"
	sweepEvery  = 10 * time.Minute
	sweepAge    = time.Hour
	// sweepPage is how many ConfigMaps are looked at at once: each may have 1 MiB.
	sweepPage = 20
)

// stateName is the name of a ScaledObject's ConfigMap: readable as far as there is room, and unique by its end.
func stateName(ref keda.Ref) string {
	sum := sha256.Sum256([]byte(ref.String()))
	name := statePrefix + ref.Namespace + "." + ref.Name
	const most = 200
	return strings.TrimRight(name[:min(len(name), most)], ".-") + "-" + hex.EncodeToString(sum[:6])
}

// store returns where the state of a ScaledObject's triggers is kept: in this scaler's own namespace, so that it needs no
// rights elsewhere.
func (p *process) store(ref keda.Ref) (k8s.Store, error) {
	return p.stores.get(stateName(ref), func(name string) (*k8s.ConfigMapStore, error) {
		return k8s.NewConfigMapStore(k8s.ConfigMapStoreConfig{Client: p.kube.CoreV1(), Namespace: p.namespace, Name: name})
	})
}

// Stores are shared by the triggers of a ScaledObject, which write to one ConfigMap at the same time: one store lets them
// in one after the other, where several would lose to each other until they gave up. It goes with the last trigger.
type stores struct {
	mu  sync.Mutex
	all map[string]weak.Pointer[k8s.ConfigMapStore]
}

func (s *stores) get(name string, create func(name string) (*k8s.ConfigMapStore, error)) (*k8s.ConfigMapStore, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if store := s.all[name].Value(); store != nil {
		return store, nil
	}
	store, err := create(name)
	if err != nil {
		return nil, err
	}
	if s.all == nil {
		s.all = make(map[string]weak.Pointer[k8s.ConfigMapStore])
	}
	s.all[name] = weak.Make(store)
	runtime.AddCleanup(store, s.drop, name)
	return store, nil
}

// drop forgets a store that is gone, unless there is another by now.
func (s *stores) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[name].Value() == nil {
		delete(s.all, name)
	}
}

// sweepOn removes the state of ScaledObjects that are gone, until ctx ends. Only the leader does.
func (p *process) sweepOn(ctx context.Context) {
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := p.sweep(ctx, time.Now()); err != nil && ctx.Err() == nil {
			p.logger.Warn("state of ScaledObjects that are gone", "error", err)
		}
	}, sweepEvery)
}

// sweep removes every state that is older than an hour and belongs to no ScaledObject. One that cannot be removed does not
// keep the others.
func (p *process) sweep(ctx context.Context, now time.Time) error {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("keda.sh/v1alpha1")
	list.SetKind("ScaledObjectList")
	// Not copied, as only names are read: each may have 4,096 keys, and there is no limit to how many a namespace has.
	if err := p.manager.GetCache().List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return err
	}
	used := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		used[stateName(keda.Ref{Namespace: list.Items[i].GetNamespace(), Name: list.Items[i].GetName()})] = true
	}
	maps := p.kube.CoreV1().ConfigMaps(p.namespace)
	var failed []error
	for page := (metav1.ListOptions{Limit: sweepPage}); ; {
		all, err := maps.List(ctx, page)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		for i := range all.Items {
			m := &all.Items[i]
			if !strings.HasPrefix(m.Name, statePrefix) || used[m.Name] || now.Sub(m.CreationTimestamp.Time) < sweepAge {
				continue
			}
			err := maps.Delete(ctx, m.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
			switch {
			case err == nil:
				p.logger.Info("state of a ScaledObject that is gone was removed", "configMap", m.Name)
			case apierrors.IsNotFound(err): // somebody else has
			default:
				failed = append(failed, fmt.Errorf("ConfigMap %s/%s: %w", p.namespace, m.Name, err))
			}
		}
		if page.Continue = all.Continue; page.Continue == "" {
			return errors.Join(failed...)
		}
	}
}
