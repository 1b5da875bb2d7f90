package k8s

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A Grouping says how several pods form one replica. With the zero value each pod is a replica.
//
// A group is ready when all of its pods are ready; only its leader is scraped. The selector of /scale may select only the
// leaders, as that of a LeaderWorkerSet does: the other pods are found by the labels.
type Grouping struct {
	// SetLabel is the label whose value all pods of one set share.
	SetLabel string
	// GroupLabel is the label whose value identifies a group within its set.
	GroupLabel string
	// WorkerLabel is the label with the number of a pod in its group. The leader has 0.
	WorkerLabel string
	// SizeAnnotation is the annotation of a pod with the number of pods of its group. If it is absent, Size counts.
	SizeAnnotation string
	// Size is the number of pods of a group. If it is 0 and there is no annotation, the group has as many pods as exist: then
	// a group whose workers have not been created yet looks complete.
	Size int
}

// LeaderWorkerSet returns the Grouping of a LeaderWorkerSet (leaderworkerset.sigs.k8s.io).
func LeaderWorkerSet() Grouping {
	const prefix = "leaderworkerset.sigs.k8s.io/"
	return Grouping{
		SetLabel: prefix + "name", GroupLabel: prefix + "group-index", WorkerLabel: prefix + "worker-index",
		SizeAnnotation: prefix + "size",
	}
}

// KaitoWorkspace returns the Grouping of Kaito's Workspaces in an InferenceSet. Each Workspace is a replica. It has a pod on
// each of its nodes, from a StatefulSet with the Workspace's name. The first pod serves requests and has the metrics. A pod's
// index in its StatefulSet is a label since Kubernetes 1.28.
func KaitoWorkspace() Grouping {
	const workspace = "kaito.sh/workspace"
	return Grouping{SetLabel: workspace, GroupLabel: workspace, WorkerLabel: "apps.kubernetes.io/pod-index"}
}

// IsZero reports whether every pod is a replica of its own.
func (g Grouping) IsZero() bool { return g == Grouping{} }

// Validate reports every wrong field, each as a *scaling.FieldError with a path below field.
func (g Grouping) Validate(field string) error {
	if g.IsZero() {
		return nil
	}
	var e scaling.FieldErrors
	e.Check(g.SetLabel != "", field+".setLabel", g.SetLabel, "must not be empty")
	e.Check(g.GroupLabel != "", field+".groupLabel", g.GroupLabel, "must not be empty")
	e.Check(g.WorkerLabel != "", field+".workerLabel", g.WorkerLabel, "must not be empty")
	e.Check(g.Size >= 0, field+".size", g.Size, "must not be negative")
	return e.Err()
}

// groups groups pods into replicas. A pod without the labels is a replica of its own.
func (g Grouping) groups(pods []*corev1.Pod) []Replica {
	byGroup := make(map[string][]*corev1.Pod)
	var replicas []Replica
	for _, p := range pods {
		set, group := p.Labels[g.SetLabel], p.Labels[g.GroupLabel]
		if g.IsZero() || set == "" || group == "" || p.Labels[g.WorkerLabel] == "" {
			replicas = append(replicas, single(p))
			continue
		}
		key := set + "/" + group
		byGroup[key] = append(byGroup[key], p)
	}
	for _, members := range byGroup {
		slices.SortFunc(members, g.order)
		replicas = append(replicas, g.replica(members))
	}
	slices.SortFunc(replicas, func(a, b Replica) int { return cmp.Compare(a.Name, b.Name) })
	return replicas
}

// order sorts leaders before workers, then pods that count before pods that leave, then by name.
func (g Grouping) order(a, b *corev1.Pod) int {
	return cmp.Or(
		cmp.Compare(g.rank(a), g.rank(b)),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.UID, b.UID),
	)
}

func (g Grouping) rank(p *corev1.Pod) int {
	rank := 0
	if p.Labels[g.WorkerLabel] != "0" {
		rank += 2
	}
	if state, _ := Classify(p); !state.Counts() {
		rank++
	}
	return rank
}

// replica returns a group as a replica. It has its leader's state, but is not ready if a worker is not ready, leaving or
// missing.
func (g Grouping) replica(members []*corev1.Pod) Replica {
	r := single(members[0])
	r.Pods = members
	if members[0].Labels[g.WorkerLabel] != "0" {
		// Workers that leave with their leader form a replica that leaves; those whose leader is yet to come, one that is not
		// ready.
		if r.Counts() {
			r.State, r.Because = scrape.NotReady, "its leader is not there"
		}
		return r
	}
	if !r.Counts() {
		return r
	}
	for _, p := range members {
		// One of them that no node takes keeps the group from becoming ready.
		if state, why := Classify(p); state == scrape.Unschedulable {
			r.State, r.Because = state, fmt.Sprintf("pod %s of its group: %s", p.Name, why)
			return r
		}
	}
	if r.State != scrape.Ready {
		return r
	}
	size := g.size(members[0])
	present := 0
	for _, p := range members {
		state, why := Classify(p)
		if !state.Counts() && p.Labels[g.WorkerLabel] == "0" {
			continue // the previous leader
		}
		if state != scrape.Ready {
			r.State, r.Because = scrape.NotReady, fmt.Sprintf("pod %s of its group: %s", p.Name, why)
			return r
		}
		present++
	}
	if present < size {
		r.State, r.Because = scrape.NotReady, fmt.Sprintf("%d of %d pods of its group are there", present, size)
	}
	return r
}

func (g Grouping) size(leader *corev1.Pod) int {
	if n, err := strconv.Atoi(leader.Annotations[g.SizeAnnotation]); err == nil && n > 0 {
		return n
	}
	return g.Size
}
