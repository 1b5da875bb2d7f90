package k8s

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// A Replica is one replica of a target: a pod, or a group of pods that serves as one.
type Replica struct {
	Name string // name of its pod, or of its leader
	// State is the state of the replica, see Classify. A group is ready when all of its pods are.
	State scrape.PodState
	// Because says why the replica is not ready; empty if it is ready.
	Because string
	// Stuck says that the replica was never ready and is no longer expected to become ready: see scaling.StartDeadline. The
	// deadline uses the longest known cold start of the target's pods that are, or were, ready.
	Stuck bool
	// Restarts is the number of container restarts of its pod, or of its leader.
	Restarts int32
	// Restarted reports that there were restarts since the last Find: the pod's counters began again at zero.
	Restarted bool
	// Pods are its pods, the leader first.
	Pods []*corev1.Pod
}

// Leader returns the pod that is scraped.
func (r *Replica) Leader() *corev1.Pod { return r.Pods[0] }

// Counts reports whether the replica is ready or can become ready, which means that it is not leaving.
func (r *Replica) Counts() bool { return r.State.Counts() }

// Classify returns the state of a pod and, unless it is ready, the reason:
//
//	Completed    phase Succeeded
//	Failed       phase Failed
//	Terminating  deletionTimestamp is set
//	Ready        phase Running, condition Ready, an IP address
//	Unschedulable  of the rest, condition PodScheduled False with the reason Unschedulable
//	Crashing       of the rest, a container waits because it failed to start: CrashLoopBackOff, ImagePullBackOff, ...
//	NotReady     everything else: pending, booting, unknown
func Classify(p *corev1.Pod) (state scrape.PodState, because string) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded:
		return scrape.Completed, "completed"
	case p.Status.Phase == corev1.PodFailed:
		return scrape.Failed, "failed"
	case p.DeletionTimestamp != nil:
		return scrape.Terminating, "terminating"
	case p.Status.Phase != corev1.PodRunning:
		if p.Status.Phase == "" {
			return scrape.NotReady, "phase is not known yet"
		}
		return waits(p, "phase "+string(p.Status.Phase))
	case readySince(p).Status != corev1.ConditionTrue:
		return waits(p, "condition Ready is not True")
	case p.Status.PodIP == "":
		return scrape.NotReady, "no IP address yet"
	}
	return scrape.Ready, ""
}

func single(p *corev1.Pod) Replica {
	state, because := Classify(p)
	return Replica{Name: p.Name, State: state, Because: because, Restarts: restarts(p), Pods: []*corev1.Pod{p}}
}

// identity returns what identifies a pod, also among pods that had the same name before: its UID or, if it has none, as in
// fakes, its namespace and name.
func identity(p *corev1.Pod) string {
	if p.UID != "" {
		return string(p.UID)
	}
	return p.Namespace + "/" + p.Name
}

func restarts(p *corev1.Pod) int32 {
	var n int32
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			n += statuses[i].RestartCount
		}
	}
	return n
}

// A Pods finds the replicas of a target among the pods of its namespace. It remembers restarts and which pods were ready, and
// is therefore not safe for concurrent use.
type Pods struct {
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	lister   corelisters.PodLister
	grouping Grouping
	fleets   map[Target]*fleet
}

// NewPods returns a Pods that uses a lister, normally that of an informer.
func NewPods(lister corelisters.PodLister, grouping Grouping) (*Pods, error) {
	var e scaling.FieldErrors
	e.Check(lister != nil, "lister", nil, "must be set")
	e.Add(grouping.Validate("grouping"))
	if err := e.Err(); err != nil {
		return nil, err
	}
	return &Pods{lister: lister, grouping: grouping, fleets: make(map[Target]*fleet)}, nil
}

// Find returns the replicas that the target's selector selects, sorted by name, including those that leave. Without a
// selector the error is an ErrNoSelector.
func (p *Pods) Find(s Scale) ([]Replica, error) {
	const doing = "find the pods of"
	if s.Selector == nil || s.Selector.Empty() {
		return nil, &TargetError{Target: s.Target, Doing: doing, What: ErrNoSelector}
	}
	pods, err := p.lister.Pods(s.Target.Namespace).List(s.Selector)
	if err == nil && !p.grouping.IsZero() {
		pods, err = p.withGroups(s.Target.Namespace, pods)
	}
	if err != nil {
		return nil, &TargetError{Target: s.Target, Doing: doing, Err: err}
	}
	replicas := p.grouping.groups(pods)
	f := p.fleet(s.Target)
	if s.UID != f.uid {
		f.uid, f.absent = s.UID, nil // another target of this name has waited for no pod yet
	}
	restarts, ready := f.restarts, f.ready
	f.restarts, f.ready = make(map[string]int32, len(replicas)), make(map[string]bool, len(replicas))
	for i := range replicas {
		r := &replicas[i]
		id := identity(r.Leader())
		last, known := restarts[id]
		r.Restarted = known && r.Restarts > last
		f.restarts[id] = r.Restarts
		if ready[id] {
			f.ready[id] = true
		}
		f.learn(r)
	}
	now := p.now()
	for i := range replicas {
		replicas[i].Stuck = f.stuck(&replicas[i], now)
	}
	return replicas, nil
}

// Absent returns how many of a target's replicas that were requested and have no pod are no longer expected: they have had no
// pod for longer than scaling.StartDeadline. It must be called at each observation, with the number of replicas without a
// pod.
func (p *Pods) Absent(t Target, absent int32) (stuck int32) {
	return p.fleet(t).missing(absent, p.now())
}

func (p *Pods) fleet(t Target) *fleet {
	f := p.fleets[t]
	if f == nil {
		f = &fleet{}
		p.fleets[t] = f
	}
	return f
}

func (p *Pods) now() time.Time {
	if p.Now == nil {
		return time.Now() //nolint:forbidigo // the documented default of Pods.Now
	}
	return p.Now()
}

// Forget removes what is remembered of a target.
func (p *Pods) Forget(t Target) { delete(p.fleets, t) }

// withGroups adds the pods of the same sets that the selector does not select.
func (p *Pods) withGroups(namespace string, selected []*corev1.Pod) ([]*corev1.Pod, error) {
	sets := make(map[string]bool)
	all := make([]*corev1.Pod, 0, len(selected))
	for _, pod := range selected {
		if set := pod.Labels[p.grouping.SetLabel]; set == "" {
			all = append(all, pod)
		} else {
			sets[set] = true
		}
	}
	if len(sets) == 0 {
		return all, nil
	}
	grouped, err := labels.NewRequirement(p.grouping.SetLabel, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	members, err := p.lister.Pods(namespace).List(labels.NewSelector().Add(*grouped))
	return append(all, slices.DeleteFunc(members, func(pod *corev1.Pod) bool { return !sets[pod.Labels[p.grouping.SetLabel]] })...), err
}

// A Port says at which port a replica is scraped. With the zero value the endpoints of the metrics say it.
type Port struct {
	// Port is the number, or the name of a container's port. A name is looked up in each pod, so that the numbers may differ
	// between pods, as they do on the host's network.
	Port intstr.IntOrString
	// Scheme is "http" (the default) or "https". It is used only if Port is set.
	Scheme string
}

// Validate reports every wrong field, each as a *scaling.FieldError with a path below field.
func (p Port) Validate(field string) error {
	var e scaling.FieldErrors
	e.Check(p.Scheme == "" || p.Scheme == "http" || p.Scheme == "https", field+".scheme", p.Scheme, `must be "http" or "https"`)
	if p.Port.Type == intstr.Int {
		e.Check(p.Port.IntVal >= 0 && p.Port.IntVal <= 65535, field+".port", p.Port.IntVal, "must be between 1 and 65535")
	}
	return e.Err()
}

func (p Port) isZero() bool { return p.Port == intstr.IntOrString{} || p.Port == intstr.FromString("") }

// number returns the number of the port in a pod. Ports of containers take precedence over those of sidecars.
func (p Port) number(pod *corev1.Pod) (int32, bool) {
	if p.Port.Type == intstr.Int {
		return p.Port.IntVal, true
	}
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for _, port := range containers[i].Ports {
				if port.Name == p.Port.StrVal {
					return port.ContainerPort, true
				}
			}
		}
	}
	return 0, false
}

// ScrapeTarget returns what the scraper scrapes of a replica: its leader, at the leader's IP address.
//
// The identity contains the number of restarts, so that the values of a container before a restart do not count for the
// container after it. A ready pod without a port of this name becomes a target without an address. The scraper counts it as
// failed, because the pod serves an unknown load.
func (p Port) ScrapeTarget(r *Replica) scrape.Pod {
	pod := r.Leader()
	target := scrape.Pod{Name: r.Name, UID: fmt.Sprintf("%s/%d", identity(pod), r.Restarts), State: r.State, Stuck: r.Stuck}
	if r.State != scrape.Ready {
		return target
	}
	if p.isZero() {
		target.Host = pod.Status.PodIP
		return target
	}
	if number, ok := p.number(pod); ok {
		target.URL = cmp.Or(p.Scheme, "http") + "://" + net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(int(number)))
	}
	return target
}
