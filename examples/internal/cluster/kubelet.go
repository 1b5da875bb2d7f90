package cluster

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// KubeletOptions of [StartKubelet]. The zero value runs the pods of all namespaces, each with an idle page.
type KubeletOptions struct {
	// Namespace is where the pods are. Empty: everywhere. Two kubelets must not share a namespace.
	Namespace string
	// Port is where every pod serves. Zero: 5000.
	Port int
	// StartDelay is how long a pod loads before it listens and is ready. Meanwhile it is Running, with its address.
	StartDelay time.Duration
	// StopDelay is how long a deleted pod stays, terminating and still serving.
	StopDelay time.Duration

	// Metrics are the values of a pod's page at the moment, by the names of the metrics; see [Page]. Nil: those of
	// Fleet.
	Metrics func(Pod) map[string]float64
	// Fleet, if any, is told how many pods are ready.
	Fleet *Fleet
	// Model is the label model_name of the pages. Empty: "model".
	Model string
}

// node is the name of the node.
const node = "inferscale"

func (o KubeletOptions) withDefaults() KubeletOptions {
	o.Port, o.Model = cmp.Or(o.Port, 5000), cmp.Or(o.Model, "model")
	if o.Metrics == nil && o.Fleet != nil {
		o.Metrics = o.Fleet.Metrics
	}
	if o.Metrics == nil {
		o.Metrics = func(Pod) map[string]float64 { return Page(0, 0, 0) }
	}
	return o
}

// A Pod is what [Kubelet] knows about one pod.
type Pod struct {
	Namespace string
	Name      string
	Labels    map[string]string
	Addr      netip.AddrPort // where it serves
	Ready     bool
	Leaving   bool // it was deleted, and its StopDelay is not over
	Failure   Failure
}

// Key is the namespace and the name.
func (p Pod) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// URL is the address of the pod's page.
func (p Pod) URL() string { return "http://" + p.Addr.String() + "/metrics" }

// A Kubelet is a node and what runs its pods: it plays scheduler and kubelet. Its methods may be called from several
// goroutines.
type Kubelet struct {
	options KubeletOptions
	client  *kubernetes.Clientset
	store   cache.Store // of the pods, as the API server has them
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu       sync.Mutex
	next     netip.Addr // to give
	pods     map[types.NamespacedName]*podState
	failures map[types.NamespacedName]Failure
	unready  map[types.NamespacedName]bool
}

// StartKubelet makes a node and starts to run pods on it, until Stop. The context is for making the node only.
func StartKubelet(ctx context.Context, config *rest.Config, o KubeletOptions) (*Kubelet, error) {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	o = o.withDefaults()
	if err := makeNode(ctx, clientset); err != nil {
		return nil, fmt.Errorf("node %s: %w", node, err)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k := &Kubelet{
		options:  o,
		client:   clientset,
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[types.NamespacedName]()),
		cancel:   cancel,
		next:     someAddress(),
		pods:     map[types.NamespacedName]*podState{},
		failures: map[types.NamespacedName]Failure{},
		unready:  map[types.NamespacedName]bool{},
	}
	enqueue := func(object any) {
		if name, err := cache.DeletionHandlingObjectToName(object); err == nil {
			k.queue.Add(name.AsNamespacedName())
		}
	}
	store, watch := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(clientset.CoreV1().RESTClient(), "pods", o.Namespace, fields.Everything()),
		ObjectType:    &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    enqueue,
			UpdateFunc: func(_, object any) { enqueue(object) },
			DeleteFunc: enqueue,
		},
	})
	k.store = store
	k.done.Go(func() { watch.RunWithContext(run) })
	k.done.Go(func() { k.work(run) })
	return k, nil
}

// Stop stops the kubelet and closes what its pods serve. The pods stay in the API server.
func (k *Kubelet) Stop() {
	k.cancel()
	k.queue.ShutDown()
	k.done.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.pods {
		s.server.close()
		s.server = nil
	}
}

// Pods returns the pods that have an address, by namespace and name.
func (k *Kubelet) Pods() []Pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]Pod, 0, len(k.pods))
	for _, s := range k.pods {
		all = append(all, k.describe(s))
	}
	slices.SortFunc(all, func(a, b Pod) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// work is the worker: one pod at a time.
func (k *Kubelet) work(ctx context.Context) {
	for {
		pod, stop := k.queue.Get()
		if stop {
			return
		}
		again, err := k.sync(ctx, pod)
		switch {
		case err != nil && ctx.Err() == nil:
			k.queue.AddRateLimited(pod)
		case again > 0:
			k.queue.Forget(pod)
			k.queue.AddAfter(pod, again)
		default:
			k.queue.Forget(pod)
		}
		k.queue.Done(pod)
	}
}

// sync takes a pod one step further. It returns after which time the next step is due, or zero to wait for a change.
func (k *Kubelet) sync(ctx context.Context, name types.NamespacedName) (again time.Duration, err error) {
	object, exists, err := k.store.GetByKey(name.String())
	if err != nil {
		return 0, err
	}
	pod, ok := object.(*corev1.Pod)
	switch {
	case !exists || !ok:
		k.forget(name)
		return 0, nil
	case pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil:
		return 0, k.bind(ctx, pod)
	case pod.Spec.NodeName != node:
		return 0, nil
	case pod.DeletionTimestamp != nil:
		return k.finish(ctx, pod)
	default:
		return k.run(ctx, pod)
	}
}

// bind gives the pod to the node, as a scheduler does.
func (k *Kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	err := k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // the watch will tell
	}
	return err
}

// finish lets a deleted pod serve until its StopDelay is over, and then confirms the deletion.
func (k *Kubelet) finish(ctx context.Context, pod *corev1.Pod) (again time.Duration, err error) {
	k.mu.Lock()
	if s := k.pods[client.ObjectKeyFromObject(pod)]; s != nil && s.uid == pod.UID {
		if s.leaving.IsZero() {
			s.leaving = time.Now()
		}
		again = k.options.StopDelay - time.Since(s.leaving)
	}
	k.mu.Unlock()
	if again > 0 {
		k.count()
		return again, nil
	}
	k.forget(client.ObjectKeyFromObject(pod))
	var grace int64
	err = k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &grace,
		Preconditions:      metav1.NewUIDPreconditions(string(pod.UID)),
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil
	}
	return 0, err
}

// run gives the pod an address, lets it serve after its StartDelay, and says so in its status.
func (k *Kubelet) run(ctx context.Context, pod *corev1.Pod) (again time.Duration, err error) {
	k.mu.Lock()
	s := k.pods[client.ObjectKeyFromObject(pod)]
	if s == nil || s.uid != pod.UID {
		if s != nil {
			s.server.close() // of an older pod of this name
		}
		s = &podState{key: client.ObjectKeyFromObject(pod), uid: pod.UID, labels: pod.Labels, since: time.Now(), addr: k.address()}
		k.pods[s.key] = s
	}
	again = k.options.StartDelay - time.Since(s.since)
	if s.loaded = again <= 0; s.loaded {
		again = 0
		err = k.serve(s)
	}
	s.ready = s.loaded && err == nil && !k.unready[s.key]
	status := s.status(pod)
	k.mu.Unlock()
	if err != nil {
		return 0, err
	}
	k.count()
	return again, k.writeStatus(ctx, pod, status)
}

// forget closes what a pod serves, and forgets the pod.
func (k *Kubelet) forget(name types.NamespacedName) {
	k.mu.Lock()
	if s := k.pods[name]; s != nil {
		s.server.close()
		delete(k.pods, name)
	}
	delete(k.failures, name)
	delete(k.unready, name)
	k.mu.Unlock()
	k.count()
}

// count tells the fleet how many pods are ready.
func (k *Kubelet) count() {
	if k.options.Fleet == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	ready := 0
	for _, s := range k.pods {
		if s.ready && s.leaving.IsZero() {
			ready++
		}
	}
	k.options.Fleet.setPods(ready)
}

// address returns the next address for a pod. The first one is drawn, so that two tests at once rarely meet.
func (k *Kubelet) address() netip.Addr {
	addr := k.next
	if k.next = addr.Next(); !podAddresses().Contains(k.next) {
		k.next = podAddresses().Addr().Next()
	}
	return addr
}

func podAddresses() netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{127, 8, 0, 0}), 13) }

func someAddress() netip.Addr {
	return netip.AddrFrom4([4]byte{127, 8 + byte(rand.IntN(8)), byte(rand.IntN(256)), 1})
}

// makeNode makes the node, unless it is there.
func makeNode(ctx context.Context, clientset *kubernetes.Clientset) error {
	nodes := clientset.CoreV1().Nodes()
	made, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	if err != nil {
		return err
	}
	made.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("1k"),
		corev1.ResourceMemory: resource.MustParse("10Ti"),
		corev1.ResourcePods:   resource.MustParse("10k"),
	}
	made.Status.Allocatable = made.Status.Capacity
	made.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fake",
		LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	_, err = nodes.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	return err
}
