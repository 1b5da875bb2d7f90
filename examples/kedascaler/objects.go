package main

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/adapters/keda"
)

// Objects are what ScaledObjects say, each read once while it stays as it is, since all its triggers ask in every round.
type objects struct {
	mu  sync.Mutex
	all map[keda.Ref]readObject
}

type readObject struct {
	uid     types.UID
	version string
	object  keda.Object
	err     error
}

// read returns what a ScaledObject says. It does not change it.
func (o *objects) read(ref keda.Ref, u *unstructured.Unstructured) (keda.Object, error) {
	uid, version := u.GetUID(), u.GetResourceVersion()
	o.mu.Lock()
	known, ok := o.all[ref]
	o.mu.Unlock()
	if ok && known.uid == uid && known.version == version {
		return known.object, known.err
	}
	object, err := keda.ObjectOf(u)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.all == nil {
		o.all = make(map[keda.Ref]readObject)
	}
	o.all[ref] = readObject{uid: uid, version: version, object: object, err: err}
	return object, err
}

// removed hears from the informer of a ScaledObject that is gone.
func (o *objects) removed(object any) {
	if name, err := toolscache.DeletionHandlingObjectToName(object); err == nil {
		o.drop(keda.Ref{Namespace: name.Namespace, Name: name.Name})
	}
}

// drop forgets a ScaledObject that is gone.
func (o *objects) drop(ref keda.Ref) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.all, ref)
}
