package k8s

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

const (
	// firstSync is how long after its start a pod's first condition Ready can be dated: one that is later has changed.
	firstSync = time.Minute
	// longestStart bounds what is taken for a cold start: a pod that was not ready for a while, days after it was made,
	// shows no more than when that ended.
	longestStart = time.Hour
)

// waits says why a pod that is not ready is not, where its status tells: no node takes it, or it starts and fails.
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

// Fails reports whether a container that waits for a reason has failed to start.
func Fails(reason string) bool {
	switch reason {
	case "CrashLoopBackOff", "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName", "ErrInvalidImageName",
		"CreateContainerError", "CreateContainerConfigError", "RunContainerError", "StartError":
		return true
	}
	return false
}

// A fleet is what is remembered of the replicas of a target.
type fleet struct {
	restarts map[string]int32
	ready    map[string]bool // those that were ready once, by identity
	cold     time.Duration   // the longest time from a pod's creation to ready
	absent   []time.Time     // since when as many replicas have no pod: the first, the second, ...
}

// readySince returns the condition Ready; one without a status and a time where there is none.
func readySince(p *corev1.Pod) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c
		}
	}
	return corev1.PodCondition{}
}

// learn notes of a replica whether it was ready, and how long that took.
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

// stuck reports whether a replica was never ready and is not expected any more.
func (f *fleet) stuck(r *Replica, now time.Time) bool {
	p := r.Leader()
	began := p.CreationTimestamp.Time
	return r.Counts() && r.State != scrape.Ready && !began.IsZero() && !f.ready[identity(p)] && now.Sub(began) >= scaling.StartDeadline(f.cold)
}

// missing notes how many replicas have no pod, and returns how many of them are not expected any more, as where a quota
// is used up.
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
