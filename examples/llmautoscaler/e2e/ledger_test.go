package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// A ledger has what the API server shows of the targets, of the objects and of the lease, as watches of its own saw it.
// Revisions are those of the store, which count all writes of the cluster in their order.
type ledger struct {
	mu      sync.Mutex
	counts  map[string][]count
	states  map[string][]savedState
	holders []string // of the lease, one after the other
	missed  []string // by the watches
}

// A count is one that a target had from a revision on.
type count struct {
	revision uint64
	replicas int32
	seen     time.Time
}

// A savedState is what a stored state says of writes, from a revision on.
type savedState struct {
	revision uint64
	text     string
	Open     []struct {
		Version string
		To      int32
	}
	Last *struct{ At int64 }
}

func newLedger(t *testing.T, client dynamic.Interface) *ledger {
	t.Helper()
	l := &ledger{counts: make(map[string][]count), states: make(map[string][]savedState)}
	var all sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() { stop(); all.Wait() })
	for _, one := range []struct {
		resource  schema.GroupVersionResource
		namespace string
		note      func(*unstructured.Unstructured, uint64)
	}{
		{schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, namespace, l.target},
		{v1alpha1.GroupVersion().WithResource(v1alpha1.Resource), namespace, l.object},
		{schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}, system, l.lease},
	} {
		resource := client.Resource(one.resource).Namespace(one.namespace)
		list, err := resource.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			l.add(&list.Items[i], one.note)
		}
		all.Go(func() {
			l.follow(ctx, resource, list.GetResourceVersion(), one.note)
		})
	}
	return l
}

// follow watches from a revision on, across outages.
func (l *ledger) follow(ctx context.Context, r dynamic.ResourceInterface, revision string, note func(*unstructured.Unstructured, uint64)) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for ; ctx.Err() == nil; <-tick.C {
		w, err := r.Watch(ctx, metav1.ListOptions{ResourceVersion: revision})
		if err != nil {
			continue
		}
		for event := range w.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Error {
				l.mu.Lock()
				l.missed = append(l.missed, fmt.Sprintf("watch from revision %s on: %v", revision, event.Object))
				l.mu.Unlock()
				if apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) || apierrors.IsGone(apierrors.FromObject(event.Object)) {
					w.Stop()
					return
				}
				continue
			}
			revision = object.GetResourceVersion()
			l.add(object, note)
		}
		w.Stop()
	}
}

func (l *ledger) add(o *unstructured.Unstructured, note func(*unstructured.Unstructured, uint64)) {
	revision, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	l.mu.Lock()
	defer l.mu.Unlock()
	note(o, revision)
}

func (l *ledger) target(o *unstructured.Unstructured, revision uint64) {
	replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
	all := l.counts[o.GetName()]
	if n := len(all); n == 0 || all[n-1].replicas != int32(replicas) {
		l.counts[o.GetName()] = append(all, count{revision, int32(replicas), time.Now()})
	}
}

func (l *ledger) object(o *unstructured.Unstructured, revision uint64) {
	var stored struct{ State savedState }
	text := o.GetAnnotations()[k8s.AnnotationPrefix+"/state-realtime"]
	if all := l.states[o.GetName()]; text == "" && len(all) == 0 || len(all) > 0 && all[len(all)-1].text == text {
		return
	}
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		l.missed = append(l.missed, fmt.Sprintf("the state of %s at revision %d: %v: %s", o.GetName(), revision, err, text))
	}
	stored.State.revision, stored.State.text = revision, text
	l.states[o.GetName()] = append(l.states[o.GetName()], stored.State)
}

func (l *ledger) lease(o *unstructured.Unstructured, _ uint64) {
	holder, _, _ := unstructured.NestedString(o.Object, "spec", "holderIdentity")
	if n := len(l.holders); holder != "" && (n == 0 || l.holders[n-1] != holder) {
		l.holders = append(l.holders, holder)
	}
}

// holder returns who holds the lease, and how many have held it.
func (l *ledger) holder() (who string, since int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.holders); n > 0 {
		who, since = l.holders[n-1], n
	}
	return who, since
}

// now returns the last count that was seen of a target.
func (l *ledger) now(name string) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if all := l.counts[name]; len(all) > 0 {
		return all[len(all)-1].replicas
	}
	return -1
}

// slack is by how much a bound of when something happened may be wrong, on a busy machine.
const slack = 250 * time.Millisecond

// The rules that steps are held to.
type rules struct {
	up, down time.Duration // cooldowns, both from the last change in either direction
	most     int32
	// load returns what a target's load asked for all the time from one time to another: +1 more, -1 less, 0 now this, now that.
	load func(name string, from, to time.Time) int
}

// A verdict is what the ledger shows.
type verdict struct {
	steps, doubles, lost int
	least                time.Duration // between two changes, beyond the cooldown
	wrong                []string
}

// judge goes through every change of every target: each is one replica, was made by a write that had been stored as an
// intent, comes after the cooldown and goes where the load asks for. The cooldown is counted from the latest time at which
// the change before can have been made to the earliest at which this one can.
func (l *ledger) judge(writes []written, r rules) verdict {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := verdict{least: time.Hour}
	for name, counts := range l.counts {
		var made time.Time // at the latest, the change before
		var before int32   // its direction
		for i := 1; i < len(counts); i++ {
			was, is := counts[i-1], counts[i]
			by := is.replicas - was.replicas
			say := func(format string, args ...any) {
				v.wrong = append(v.wrong, fmt.Sprintf("%s %d -> %d at %s (revision %d): ", name, was.replicas, is.replicas,
					is.seen.Format(time.StampMilli), is.revision)+fmt.Sprintf(format, args...))
			}
			w := author(writes, name, is)
			if w == nil {
				say("nobody wrote that")
				continue
			}
			v.steps++
			if is.replicas < 1 || is.replicas > r.most {
				say("out of bounds")
			}
			if !l.intended(name, w, is.revision) {
				say("no intent was stored")
			}
			if by*by != 1 {
				v.doubles++
				say("more than one step")
			}
			cooldown, direction := r.up, 1
			if by < 0 {
				cooldown, direction = r.down, -1
			}
			if !made.IsZero() {
				beyond := w.sent.Sub(made) - cooldown
				v.least = min(v.least, beyond)
				if beyond < -slack {
					v.lost++
					if (before > 0) == (by > 0) {
						v.doubles++
					}
					say("%s too early: sent at %s, the change before was made at %s at the latest", -beyond, w.sent.Format(time.StampMilli), made.Format(time.StampMilli))
				}
			}
			if r.load(name, w.sent.Add(-20*time.Second), w.sent) == -direction {
				say("not what the load asks for")
			}
			before, made = by, is.seen
			if !w.answered.IsZero() && w.answered.Before(made) {
				made = w.answered
			}
		}
		for i, states := 1, l.states[name]; i < len(states); i++ {
			was, is := states[i-1].Last, states[i].Last
			if was != nil && (is == nil || is.At < was.At) {
				v.lost++
				v.wrong = append(v.wrong, fmt.Sprintf("%s: the state of revision %d forgets the change at %d", name, states[i].revision, was.At))
			}
		}
	}
	v.wrong = append(v.wrong, l.missed...)
	return v
}

// author returns the write that made a change: the one that left its revision, or else one that was not answered.
func author(writes []written, name string, is count) *written {
	var maybe *written
	for i := range writes {
		w := &writes[i]
		switch {
		case w.name != name:
		case w.revision == is.revision && w.code == 200:
			return w
		case w.answered.IsZero() && w.to == is.replicas && w.sent.Before(is.seen) && is.seen.Sub(w.sent) < time.Minute:
			maybe = w
		}
	}
	return maybe
}

// intended reports whether a write was stored as an intent before it was made. The caller holds the lock.
func (l *ledger) intended(name string, w *written, revision uint64) bool {
	for _, s := range l.states[name] {
		if s.revision >= revision {
			return false
		}
		for _, open := range s.Open {
			if open.Version == w.version && open.To == w.to {
				return true
			}
		}
	}
	return false
}
