// Package pods looks at the pods that an informer keeps.
package pods

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// What is kept of a pod at the most, as its author may fill it up to 1.5 MB: a pod with more labels is no target's, and more named
// ports are not found.
const (
	mostLabels = 16 << 10 // bytes, keys and values
	mostPorts  = 64       // that have names, with those of sidecars
	mostSize   = 16       // bytes of how large a group is said to be
)

// Trim keeps of a pod what a round looks at, which is a small part of it: the informer's memory is that of all pods.
func Trim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil // a tombstone
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion,
			Labels: few(p.Labels), CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
		},
		Status: corev1.PodStatus{
			Phase: p.Status.Phase, PodIP: p.Status.PodIP, StartTime: p.Status.StartTime,
			ContainerStatuses: restarts(p.Status.ContainerStatuses), InitContainerStatuses: restarts(p.Status.InitContainerStatuses),
		},
	}
	room := mostPorts
	kept.Spec.Containers, room = ports(p.Spec.Containers, room)
	kept.Spec.InitContainers, _ = ports(p.Spec.InitContainers, room)
	key := k8s.LeaderWorkerSet().SizeAnnotation
	if size, ok := p.Annotations[key]; ok && len(size) <= mostSize {
		metav1.SetMetaDataAnnotation(&kept.ObjectMeta, key, size)
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == corev1.PodReady:
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		case c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue:
			kept.Status.Conditions = append(kept.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
	}
	return kept, nil
}

// few returns labels that are not too many, or none.
func few(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size > mostLabels {
		return nil
	}
	return all
}

// ports keeps of containers the named ports, as far as there is room, and returns how much is left.
func ports(all []corev1.Container, room int) ([]corev1.Container, int) {
	var kept []corev1.Container
	for i := range all {
		var named []corev1.ContainerPort
		for _, p := range all[i].Ports {
			if p.Name != "" && room > 0 {
				named = append(named, corev1.ContainerPort{Name: p.Name, ContainerPort: p.ContainerPort})
				room--
			}
		}
		if len(named) > 0 {
			kept = append(kept, corev1.Container{Name: all[i].Name, Ports: named})
		}
	}
	return kept, room
}

// restarts keeps the sum of what restarted, and why one failed to start.
func restarts(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var kept corev1.ContainerStatus
	for i := range all {
		kept.RestartCount += all[i].RestartCount
		if w := all[i].State.Waiting; w != nil && k8s.Fails(w.Reason) {
			kept.State.Waiting = &corev1.ContainerStateWaiting{Reason: w.Reason}
		}
	}
	if kept.RestartCount == 0 && kept.State.Waiting == nil {
		return nil
	}
	return []corev1.ContainerStatus{kept}
}

// Lister returns the lister of pods that are in a cache, whatever namespaces it has. What it returns is the cache's own
// and must not be changed.
func Lister(reader client.Reader) corelisters.PodLister { return lister{reader: reader} }

type lister struct {
	reader    client.Reader
	namespace string
}

// Pods returns the lister of a namespace.
func (l lister) Pods(namespace string) corelisters.PodNamespaceLister {
	return lister{l.reader, namespace}
}

// List returns the pods that a selector selects.
func (l lister) List(selector labels.Selector) ([]*corev1.Pod, error) {
	var list corev1.PodList
	err := l.reader.List(context.Background(), &list, &client.ListOptions{
		Namespace: l.namespace, LabelSelector: selector, UnsafeDisableDeepCopy: new(true),
	})
	if err != nil {
		return nil, err
	}
	pods := make([]*corev1.Pod, len(list.Items))
	for i := range list.Items {
		pods[i] = &list.Items[i]
	}
	return pods, nil
}

// Get returns a pod by its name.
func (l lister) Get(name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := l.reader.Get(context.Background(), types.NamespacedName{Namespace: l.namespace, Name: name}, pod)
	return pod, err
}
