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

// A Grouping says how several pods make one replica. The zero value is one pod a replica.
//
// A group is ready when all of its pods are; only its leader is scraped. The selector of /scale may select the leaders
// alone, as that of a LeaderWorkerSet does: the other pods are found by the labels.
type Grouping struct {
	// SetLabel is the label that all pods of one set share.
	SetLabel string
	// GroupLabel is the label that tells the groups of a set apart.
	GroupLabel string
	// WorkerLabel is the label that numbers the pods of a group. The leader has 0.
	WorkerLabel string
	// SizeAnnotation is the annotation of a pod that says how many pods its group has. Size counts where it is absent.
	SizeAnnotation string
	// Size is how many pods a group has. 0, and no annotation, means as many as there are: then a group whose workers
	// have not been created yet looks complete.
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

// KaitoWorkspace returns the Grouping of Kaito's Workspaces, as an InferenceSet has them: each is a replica, and has a pod
// on each of its nodes, of a StatefulSet of its name. The first of them serves, and has the metrics. A pod's place in its
// StatefulSet is a label since Kubernetes 1.28.
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

// groups makes replicas of pods. A pod without the labels is a replica of its own.
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

// order puts the leader first, pods that count before those that leave, and the rest by name.
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
	if state, _ := Classify(p); leaves(state) {
		rank++
	}
	return rank
}

// replica judges a group: its leader's state, or not ready where a worker is not ready, is leaving or is not there.
func (g Grouping) replica(members []*corev1.Pod) Replica {
	r := single(members[0])
	r.Pods = members
	if members[0].Labels[g.WorkerLabel] != "0" {
		// Workers whose leader is gone go with it; those whose leader is yet to come make a replica that is not ready.
		if !leaves(r.State) {
			r.State, r.Because = scrape.NotReady, "its leader is not there"
		}
		return r
	}
	if r.State != scrape.Ready {
		return r
	}
	size := g.size(members[0])
	present := 0
	for _, p := range members {
		state, why := Classify(p)
		if leaves(state) && p.Labels[g.WorkerLabel] == "0" {
			continue // the leader before
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
