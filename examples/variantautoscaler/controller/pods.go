package controller

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/examples/internal/pods"
)

// waitingNote is after how long of waiting for pods it is said again.
const waitingNote = 30 * time.Second

// A PodCache knows the pods of those namespaces that somebody needs. It is safe for concurrent use.
type PodCache struct {
	client kubernetes.Interface

	mu         sync.Mutex
	namespaces map[string]*namespacePods
}

type namespacePods struct {
	users  int
	stop   chan struct{} // closed with the last user
	synced cache.InformerSynced
	lister corelisters.PodLister
}

// NewPodCache returns the PodCache of a cluster, with no namespace yet.
func NewPodCache(client kubernetes.Interface) *PodCache {
	return &PodCache{client: client, namespaces: make(map[string]*namespacePods)}
}

// use returns what is known of a namespace's pods, and what gives it up.
func (c *PodCache) use(namespace string) (known *namespacePods, release func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known = c.namespaces[namespace]
	if known == nil {
		factory := informers.NewSharedInformerFactoryWithOptions(c.client, 0,
			informers.WithNamespace(namespace), informers.WithTransform(pods.Trim))
		all := factory.Core().V1().Pods()
		stop := make(chan struct{})
		known = &namespacePods{stop: stop, synced: all.Informer().HasSynced, lister: all.Lister()}
		factory.Start(stop)
		c.namespaces[namespace] = known
	}
	known.users++
	return known, sync.OnceFunc(func() { c.release(namespace, known) })
}

func (c *PodCache) release(namespace string, known *namespacePods) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known.users--; known.users == 0 {
		close(known.stop)
		delete(c.namespaces, namespace)
	}
}

// await waits until the pods are known, and says so if that takes long.
func (p *namespacePods) await(ctx context.Context, logger *slog.Logger) error {
	for {
		part, cancel := context.WithTimeout(ctx, waitingNote)
		ok := cache.WaitForCacheSync(part.Done(), p.synced)
		cancel()
		if ok || ctx.Err() != nil {
			return ctx.Err()
		}
		logger.Warn("pods are not known yet: may this service account list and watch pods in the namespace?")
	}
}
