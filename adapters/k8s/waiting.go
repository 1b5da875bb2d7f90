package k8s

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

const (
	// firstSync is how long after a pod's start its condition Ready can be set for the first time. A later transition time
	// means that the condition has changed since.
	firstSync = time.Minute
	// longestStart caps an observed cold start. The transition time of Ready is only the last one: for a pod that was not
	// ready for a while, days after its creation, it is the end of that time.
	longestStart = time.Hour
)

// waits returns why a pod is not ready, if its status tells: no node accepts it, or a container fails to start.
func waits(p *corev1.Pod, because string) (scrape.PodState, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return scrape.Unschedulable, "no node takes it"
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			if w := statuses[i].State.Waiting; w != nil && Fails(w.Reason) {
				return scrape.Crashing, w.Reason
			}
		}
	}
	return scrape.NotReady, because
}

// Fails reports whether the reason for which a container waits means that it has failed to start.
func Fails(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ErrInvalidImageName",
		"CreateContainerError", "CreateContainerConfigError", "RunContainerError", "StartError":
		return true
	}
	return false
}

// A fleet is the memory of a target's replicas.
type fleet struct {
	uid      types.UID // of the target
	restarts map[string]int32
	ready    map[string]bool // pods that were ready at some time, by identity
	cold     time.Duration   // the longest time from a pod's creation to ready
	absent   []time.Time     // since when at least one replica has no pod, at least two, ...
}

// readySince returns the condition Ready, or an empty condition if there is none.
func readySince(p *corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c
		}
	}
	return corev1.PodCondition{}
}

// learn records whether a replica was ready, and how long its start took.
func (f *fleet) learn(r *Replica) {
	p := r.Leader()
	c := readySince(p)
	began := p.CreationTimestamp.Time
	switch {
	case c.Status == corev1.ConditionTrue:
		if took := c.LastTransitionTime.Sub(began); !began.IsZero() && r.Restarts == 0 && took > f.cold {
			f.cold = min(took, longestStart)
		}
		f.ready[identity(p)] = true
	case p.Status.StartTime != nil && c.LastTransitionTime.Sub(p.Status.StartTime.Time) > firstSync:
		f.ready[identity(p)] = true // it has changed since
	}
}

// stuck reports whether a replica was never ready and is no longer expected to become ready.
func (f *fleet) stuck(r *Replica, now time.Time) bool {
	p := r.Leader()
	began := p.CreationTimestamp.Time
	return r.Counts() && r.State != scrape.Ready && !began.IsZero() && !f.ready[identity(p)] && now.Sub(began) >= scaling.StartDeadline(f.cold)
}

// missing records how many replicas have no pod, and returns how many of them are no longer expected, for example because a
// quota is used up.
func (f *fleet) missing(absent int32, now time.Time) (stuck int32) {
	n := int(min(absent, maxAbsent))
	f.absent = f.absent[:min(n, len(f.absent))]
	for len(f.absent) < n {
		f.absent = append(f.absent, now)
	}
	deadline := scaling.StartDeadline(f.cold)
	for _, since := range f.absent {
		if now.Sub(since) >= deadline {
			stuck++
		}
	}
	return stuck
}
