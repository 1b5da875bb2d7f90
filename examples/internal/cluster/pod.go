package cluster

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A podState is a pod that runs.
type podState struct {
	key     types.NamespacedName
	uid     types.UID
	labels  map[string]string
	addr    netip.Addr
	since   time.Time // it was bound
	leaving time.Time // its deletion was seen; zero: it stays
	loaded  bool      // its StartDelay is over
	ready   bool
	server  *podServer // nil while it loads, and while it refuses connections
}

// serve makes the pod listen, unless its connections are to be refused. An address where another program listens is
// given up for the next one. The caller holds the lock.
func (k *Kubelet) serve(s *podState) error {
	if k.failures[s.key] == Refuse {
		s.server.close()
		s.server = nil
		return nil
	}
	if s.server != nil {
		return nil
	}
	var err error
	for range 16 {
		if s.server, err = listen(netip.AddrPortFrom(s.addr, uint16(k.options.Port)), k.handler(s.key)); err == nil {
			return nil
		}
		s.addr = k.address()
	}
	return err
}

// describe is the pod as tests see it. The caller holds the lock.
func (k *Kubelet) describe(s *podState) Pod {
	return Pod{
		Namespace: s.key.Namespace,
		Name:      s.key.Name,
		Labels:    s.labels,
		Addr:      netip.AddrPortFrom(s.addr, uint16(k.options.Port)),
		Ready:     s.ready,
		Leaving:   !s.leaving.IsZero(),
		Failure:   k.failures[s.key],
	}
}

// status is what a kubelet would say of the pod.
func (s *podState) status(pod *corev1.Pod) corev1.PodStatus {
	since := metav1.NewTime(s.since.Truncate(time.Second))
	status := corev1.PodStatus{
		Phase:     corev1.PodRunning,
		PodIP:     s.addr.String(),
		PodIPs:    []corev1.PodIP{{IP: s.addr.String()}},
		HostIP:    loopback,
		HostIPs:   []corev1.HostIP{{IP: loopback}},
		StartTime: &since,
	}
	ready := corev1.ConditionFalse
	if s.ready {
		ready = corev1.ConditionTrue
	}
	for _, c := range []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue},
		{Type: corev1.ContainersReady, Status: ready},
		{Type: corev1.PodReady, Status: ready},
	} {
		c.LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
		for _, old := range pod.Status.Conditions {
			if old.Type == c.Type && old.Status == c.Status {
				c.LastTransitionTime = old.LastTransitionTime
			}
		}
		status.Conditions = append(status.Conditions, c)
	}
	started := true
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "fake://" + node + "/" + string(s.uid) + "/" + c.Name,
			Ready: s.ready, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		})
	}
	return status
}

// writeStatus writes a status unless the pod has it.
func (k *Kubelet) writeStatus(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	status.QOSClass = pod.Status.QOSClass
	if equality.Semantic.DeepEqual(pod.Status, status) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return err
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone, and the watch will tell
	}
	return err
}

// A podServer is an HTTP server on one address.
type podServer struct {
	http     *http.Server
	finished chan struct{}
}

func listen(addr netip.AddrPort, handler http.Handler) (*podServer, error) {
	listener, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(addr))
	if err != nil {
		return nil, err
	}
	s := &podServer{
		http:     &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute},
		finished: make(chan struct{}),
	}
	go func() {
		defer close(s.finished)
		_ = s.http.Serve(listener) // always an error: that it was closed
	}()
	return s, nil
}

func (s *podServer) close() {
	if s == nil {
		return
	}
	_ = s.http.Close()
	<-s.finished
}
