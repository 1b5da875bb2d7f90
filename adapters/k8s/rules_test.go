package k8s

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scrape"
)

// wrongFields are the fields that an error names.
func wrongFields(t *testing.T, err error) (fields []string) {
	t.Helper()
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			fields = append(fields, wrongFields(t, e)...)
		}
		return fields
	}
	var f *scaling.FieldError
	require.ErrorAs(t, err, &f)
	return append(fields, f.Field)
}

// Every wrong field is told, and what is at a limit is not wrong.
func TestWrongFields(t *testing.T) {
	fine := Settings{Scales: new(Scales), Store: new(ConfigMapStore)}.orDefault()
	settings := func(change func(*Settings)) error {
		s, e := fine, scaling.FieldErrors{}
		change(&s)
		s.check(&e, nil)
		return e.Err()
	}
	lister := corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil))
	newPods := func(lister corelisters.PodLister, g Grouping) error { _, err := NewPods(lister, g); return err }
	observer := func(p *Pods, s *scrape.Scraper, port Port) error { _, err := NewPodObserver(p, s, port); return err }
	annotations := func(c AnnotationStoreConfig) error { _, err := NewAnnotationStore(c); return err }
	variants := func(c VariantLoopConfig) error { _, err := NewVariantLoop(c); return err }
	whole := Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: "llama"}
	for _, row := range []struct {
		err  error
		want []string
	}{
		{settings(func(*Settings) {}), nil},
		{settings(func(s *Settings) { s.Interval, s.Timeout, s.EventPeriod = 1, 1, 1 }), nil},
		{settings(func(s *Settings) { s.Interval, s.Timeout, s.EventPeriod = 0, 0, 0 }), []string{"interval", "timeout", "eventPeriod"}},
		{settings(func(s *Settings) { s.Jitter = 1 }), nil},
		{settings(func(s *Settings) { s.Jitter = math.Nextafter(1, 2) }), []string{"jitter"}},
		{settings(func(s *Settings) { s.Jitter = -0.1 }), []string{"jitter"}},
		{settings(func(s *Settings) { s.Conflicts = 0 }), nil},
		{settings(func(s *Settings) { s.Conflicts = -1 }), []string{"conflicts"}},
		{settings(func(s *Settings) { s.Conflicts, s.NoRetry = 0, true }), nil},
		{settings(func(s *Settings) { s.Conflicts, s.NoRetry = 1, true }), []string{"conflicts"}},
		{settings(func(s *Settings) { s.Scales, s.Store = nil, nil }), []string{"scales", "store"}},

		{Port{}.Validate("p"), nil},
		{Port{Port: intstr.FromInt32(65535)}.Validate("p"), nil},
		{Port{Port: intstr.FromInt32(65536)}.Validate("p"), []string{"p.port"}},
		{Port{Port: intstr.FromInt32(-1), Scheme: "ftp"}.Validate("p"), []string{"p.scheme", "p.port"}},
		{Port{Port: intstr.FromString("http"), Scheme: "https"}.Validate("p"), nil},

		{Grouping{}.Validate("g"), nil},
		{LeaderWorkerSet().Validate("g"), nil},
		{KaitoWorkspace().Validate("g"), nil},
		{Grouping{Size: 1}.Validate("g"), []string{"g.setLabel", "g.groupLabel", "g.workerLabel"}},
		{Grouping{SetLabel: "s", GroupLabel: "g", WorkerLabel: "w", Size: -1}.Validate("g"), []string{"g.size"}},
		{newPods(nil, Grouping{Size: 1}), []string{"lister", "grouping.setLabel", "grouping.groupLabel", "grouping.workerLabel"}},
		{newPods(lister, Grouping{}), nil},
		{observer(nil, nil, Port{Scheme: "ftp"}), []string{"pods", "scraper", "port.scheme"}},

		{whole.Validate("t"), nil},
		{Target{APIVersion: "a/b/c"}.Validate("t"), []string{"t.apiVersion", "t.kind", "t.namespace", "t.name"}},
		{annotations(AnnotationStoreConfig{Object: whole}), []string{"client", "mapper"}},
		{variants(VariantLoopConfig{Settings: fine}), []string{"variants", "group", "observer"}},
	} {
		require.Equal(t, row.want, wrongFields(t, row.err), "%v", row.err)
	}
}

// What is left out has its documented default.
func TestDefaultSettings(t *testing.T) {
	s := Settings{}.orDefault()
	require.Equal(t, []any{15 * time.Second, 10 * time.Second, 10 * time.Minute, 3, "state"}, []any{s.Interval, s.Timeout, s.EventPeriod, s.Conflicts, s.StateKey})
	require.Equal(t, "state.dry-run", Settings{DryRun: true}.orDefault().StateKey)
	require.Zero(t, Settings{NoRetry: true}.orDefault().Conflicts)
	require.Equal(t, 10*time.Minute, NewEvents(nil, 0).period)
}

// A group whose leader says how many it has needs as many; else the configured number counts.
func TestSizeOfAGroup(t *testing.T) {
	g := Grouping{SizeAnnotation: "size", Size: 3}
	for text, want := range map[string]int{"": 3, "2": 2, "1": 1, "0": 3, "-1": 3, "many": 3} {
		require.Equal(t, want, g.size(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"size": text}}}), text)
	}
}

// TestForgottenTargetsTakeNoMemory: what is remembered of a target's series goes with it.
func TestForgottenTargetsTakeNoMemory(t *testing.T) {
	m := NewMetrics()
	for _, name := range []string{"a", "b"} {
		m.Observe(&Outcome{Target: Target{Namespace: "default", Kind: "Deployment", Name: name}, Observed: Observed{Readings: []scaling.Reading{scaling.Exactly("waiting", 1)}}}, time.Second)
	}
	require.Len(t, m.seen, 2)
	m.Forget(Target{Namespace: "default", Kind: "Deployment", Name: "a"})
	require.Len(t, m.seen, 1)
}

// Who has written the count last is who did so at the latest time; one without a time is earlier than any.
func TestLastWriter(t *testing.T) {
	entry := func(manager string, second int64, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: &metav1.FieldsV1{}}
		require.NoError(t, e.FieldsV1.UnmarshalJSON([]byte(fields)))
		if second > 0 {
			at := metav1.Unix(second, 0)
			e.Time = &at
		}
		return e
	}
	const count, other = `{"f:spec":{"f:replicas":{}}}`, `{"f:spec":{"f:template":{}}}`
	for _, row := range []struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		{[]metav1.ManagedFieldsEntry{entry("a", 1, count), entry("b", 2, count)}, "b at 1970-01-01T00:00:02Z"},
		{[]metav1.ManagedFieldsEntry{entry("b", 2, count), entry("a", 1, count)}, "b at 1970-01-01T00:00:02Z"},
		{[]metav1.ManagedFieldsEntry{entry("a", 1, count), entry("b", 2, other)}, "a at 1970-01-01T00:00:01Z"},
		{[]metav1.ManagedFieldsEntry{entry("a", 0, count), entry("b", 1, count)}, "b at 1970-01-01T00:00:01Z"},
		{[]metav1.ManagedFieldsEntry{entry("b", 1, count), entry("a", 0, count)}, "b at 1970-01-01T00:00:01Z"},
		{[]metav1.ManagedFieldsEntry{entry("a", 0, count), entry("b", 0, count)}, "a"},
		{[]metav1.ManagedFieldsEntry{entry("a", 0, `half of "f:replicas"`)}, "a"},
		{[]metav1.ManagedFieldsEntry{{Manager: "a"}, entry("b", 1, other), entry("c", 1, `{"f:status":{"f:replicas":{}}}`)}, ""},
	} {
		got, err := lastWriter(row.entries)
		require.Equal(t, row.want, got)
		require.Equal(t, row.want == "", err != nil)
	}
	require.Contains(t, (&ContendedError{Target: Target{Kind: "K", Namespace: "n", Name: "m"}}).Error(), "somebody else took back the last 0 writes of K n/m: left alone until ")
}

// An old state without parts has none of them when it is upgraded.
func TestUpgradeOfWhatIsNotThere(t *testing.T) {
	upgradedFields := func(stored string) (fields map[string]json.RawMessage) {
		var top struct {
			State map[string]json.RawMessage `json:"state"`
		}
		require.NoError(t, json.Unmarshal(UpgradeState([]byte(stored)), &top))
		return top.State
	}
	fields := upgradedFields(`{"kind":"k8s.loop","version":1}`)
	require.NotContains(t, fields, "group")
	require.NotContains(t, fields, "last")
	fields = upgradedFields(`{"kind":"k8s.loop","version":1,"policy":{"a":1},"last":{"b":2}}`)
	require.JSONEq(t, `{"a":1}`, string(fields["group"]))
	require.JSONEq(t, `{"b":2}`, string(fields["last"]))
}

// Half of the workers are kept for tenants that have little at work.
func TestWhoMayHaveAnotherAtWork(t *testing.T) {
	queue := func(share, workers int, active ...int) *FairQueue[int] {
		q := NewFairQueue(func(int) string { return "" }, share).Workers(workers)
		n := 0
		for i, k := range active {
			q.active[string(rune('a'+i))] = k
			for range k {
				q.busy[n] = struct{}{}
				n++
			}
		}
		return q
	}
	for _, row := range []struct {
		q    *FairQueue[int]
		want bool
		name string
	}{
		{queue(0, 0, 100), true, "there is no limit"},
		{queue(2, 0, 1), true, "below its share"},
		{queue(2, 0, 2), false, "at its share"},
		{queue(0, 8, 3), true, "less than half are busy"},
		{queue(0, 8, 4), false, "half are, of which it has all: 4 of 4/2"},
		{queue(0, 8, 1, 3), false, "1 of 4/3"},
		{queue(0, 12, 1, 5), true, "1 of 6/3"},
		{queue(0, 12, 2, 4), false, "2 of 6/3"},
		{queue(0, 8, 0, 8), true, "who has nothing at work may"},
		{queue(0, 1, 1), true, "half of one worker is none to keep"},
	} {
		require.Equal(t, row.want, row.q.may("a"), row.name)
	}
}

// A pod that is seen to have been ready taught how long a start takes, if it can be told.
func TestWhatAStartTeaches(t *testing.T) {
	began := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	replica := func(age time.Duration, restarts int32, changes ...func(*corev1.Pod)) *Replica {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", CreationTimestamp: metav1.NewTime(began)}}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(began.Add(age))}}
		for _, change := range changes {
			change(p)
		}
		return &Replica{Restarts: restarts, Pods: []*corev1.Pod{p}}
	}
	notReady := func(p *corev1.Pod) {
		p.Status.Conditions[0].Status = corev1.ConditionFalse
		at := metav1.NewTime(began)
		p.Status.StartTime = &at
	}
	for _, row := range []struct {
		name  string
		r     *Replica
		cold  time.Duration
		ready bool
	}{
		{"a first start", replica(7*time.Minute, 0), 7 * time.Minute, true},
		{"a shorter one", replica(time.Minute, 0), 2 * time.Minute, true},
		{"a restart", replica(7*time.Minute, 1), 2 * time.Minute, true},
		{"of unknown age", replica(7*time.Minute, 0, func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }), 2 * time.Minute, true},
		{"days later", replica(72*time.Hour, 0), time.Hour, true},
		{"not ready since its start", replica(time.Minute, 0, notReady), 2 * time.Minute, false},
		{"not ready since later", replica(time.Minute+time.Second, 0, notReady), 2 * time.Minute, true},
		{"without the condition", replica(7*time.Minute, 0, func(p *corev1.Pod) { p.Status.Conditions = nil }), 2 * time.Minute, false},
	} {
		f := fleet{cold: 2 * time.Minute, ready: map[string]bool{}}
		f.learn(row.r)
		require.Equal(t, row.cold, f.cold, row.name)
		require.Equal(t, row.ready, f.ready["u"], row.name)
	}
}

// Replicas without a pod are waited for one by one.
func TestReplicasWithoutAPod(t *testing.T) {
	f, now := fleet{}, time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	deadline := scaling.StartDeadline(0)
	require.Zero(t, f.missing(2, now))
	now = now.Add(deadline - 1)
	require.Zero(t, f.missing(3, now))
	now = now.Add(1)
	require.EqualValues(t, 2, f.missing(3, now))
	require.EqualValues(t, 1, f.missing(1, now), "one is left")
	require.EqualValues(t, 1, f.missing(3, now), "and others are new")
	require.Zero(t, f.missing(0, now))
	f.missing(math.MaxInt32, now)
	require.Len(t, f.absent, maxAbsent)
}

// What says that no node takes a pod is its condition PodScheduled, with that reason.
func TestUnschedulable(t *testing.T) {
	for _, row := range []struct {
		c    corev1.PodCondition
		want scrape.PodState
	}{
		{corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}, scrape.Unschedulable},
		{corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}, scrape.NotReady},
		{corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, Reason: corev1.PodReasonUnschedulable}, scrape.NotReady},
		{corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}, scrape.NotReady},
	} {
		state, because := waits(&corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{row.c}}}, "because")
		require.Equal(t, row.want, state)
		require.Equal(t, row.want == scrape.NotReady, because == "because")
	}
}

// A group is told of a pod what there are readings for, and nothing of one that is not ready.
func TestWhatAGroupIsToldOfPods(t *testing.T) {
	v := FleetView{Ready: 2, NotReady: 1, Pods: []scrape.PodResult{
		{Name: "a", State: scrape.Ready, Values: []scrape.PodValue{{OK: true, Value: 1}, {OK: true, Value: 2}}},
		{Name: "b", State: scrape.Ready, Values: []scrape.PodValue{{Value: 3}}},
		{Name: "c", State: scrape.NotReady, Values: []scrape.PodValue{{}}},
	}}
	one := v.observation(1)
	require.Equal(t, [2]int32{2, 1}, [2]int32{one.ReadyReplicas, one.PendingReplicas})
	require.Len(t, one.Pods, 2)
	require.Equal(t, []float64{1}, one.Pods[0].Values)
	require.True(t, math.IsNaN(one.Pods[1].Values[0]), "what is not known is no number")
	two := v.observation(2)
	require.Equal(t, []float64{1, 2}, two.Pods[0].Values)
	require.Len(t, two.Pods[1].Values, 1)
}

// Of a target whose pods were never looked for, replicas without a pod are new.
func TestAbsentBeforeTheFirstLook(t *testing.T) {
	p, err := NewPods(corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)), Grouping{})
	require.NoError(t, err)
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	p.Now = func() time.Time { return now }
	require.Zero(t, p.Absent(Target{}, 2))
	now = now.Add(scaling.StartDeadline(0))
	require.EqualValues(t, 2, p.Absent(Target{}, 2))
	p.Forget(Target{})
	require.Zero(t, p.Absent(Target{}, 2))
}

// TestRegressionATargetMadeAnewHasWaitedForNoPod: what a target of the same name had waited for counted, so that replicas that had just
// been asked for were no longer expected.
func TestRegressionATargetMadeAnewHasWaitedForNoPod(t *testing.T) {
	p, err := NewPods(corelisters.NewPodLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})), Grouping{})
	require.NoError(t, err)
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	p.Now = func() time.Time { return now }
	absent := func(uid types.UID) int32 {
		_, err := p.Find(Scale{Selector: labels.SelectorFromSet(labels.Set{"app": "chat"}), UID: uid})
		require.NoError(t, err)
		return p.Absent(Target{}, 2)
	}
	require.Zero(t, absent("first"))
	now = now.Add(scaling.StartDeadline(0))
	require.EqualValues(t, 2, absent("first"))
	require.Zero(t, absent("second"))
}

// Names of pods have their namespace only where targets are in several.
func TestNamesOfPods(t *testing.T) {
	scale := func(namespace string) Scale { return Scale{Target: Target{Namespace: namespace}} }
	require.Equal(t, "p", name([]Scale{scale("a"), scale("a")}, Target{Namespace: "a"}, "p"))
	require.Equal(t, "a/p", name([]Scale{scale("a"), scale("b")}, Target{Namespace: "a"}, "p"))
}

// What was written is told though the answer cannot be read.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	_, err := parse(Target{}, &autoscalingv1.Scale{Status: autoscalingv1.ScaleStatus{Selector: "app in (("}}, "read")
	require.ErrorContains(t, err, `status.selector "app in (("`)
}

// A document takes what just fits, and tries again where somebody else was as fast.
func TestDocument(t *testing.T) {
	values, version, puts := map[string]string{"other": "12345"}, "1", 0
	var fails error
	d := document{
		where: "d", limit: 21, key: func(key string) string { return key },
		get: func(context.Context) (page, error) { return page{exists: true, version: version, values: values}, nil },
		put: func(_ context.Context, _ page, put map[string]*string) (page, error) {
			if puts++; fails != nil && puts < 3 {
				return page{}, fails
			}
			values = map[string]string{"other": "12345", "k": *put["k"]}
			return page{exists: true, version: version, values: values}, nil
		},
	}
	require.NoError(t, d.swap(t.Context(), "k", nil, []byte("123456789"+"0"), nil)) // both keys and both values
	var size *SizeError
	require.ErrorAs(t, d.swap(t.Context(), "k", []byte("1234567890"), []byte(strings.Repeat("x", 15)), nil), &size)
	for _, again := range []error{
		apierrors.NewConflict(schema.GroupResource{}, "d", nil), apierrors.NewAlreadyExists(schema.GroupResource{}, "d"), apierrors.NewNotFound(schema.GroupResource{}, "d"),
	} {
		fails, puts, values, d.known = again, 0, map[string]string{}, nil
		require.NoError(t, d.swap(t.Context(), "k", nil, []byte("a"), nil), "%v", again)
		require.Equal(t, 3, puts)
	}
	fails, puts, values, d.known = errors.New("no"), 0, map[string]string{}, nil
	require.EqualError(t, d.swap(t.Context(), "k", nil, []byte("a"), nil), "d: no")
	require.Equal(t, 1, puts)
}

// An item that is not at work is not done, whoever says so, and takes nobody's place.
func TestDoneOfWhatIsNotAtWork(t *testing.T) {
	q := NewFairQueue(func(item string) string { return item[:1] }, 1)
	q.Add("a1")
	q.Add("a2")
	item, _ := q.Get()
	q.Done("a2")
	q.Done("b1")
	require.Equal(t, map[string]int{"a": 1}, q.active)
	require.Equal(t, 1, q.Len())
	q.Done(item)
	q.Done(item)
	require.Empty(t, q.active)
	item, down := q.Get()
	require.Equal(t, "a2", item)
	require.False(t, down)
	q.ShutDown()
	q.Done(item)
	_, down = q.Get()
	require.True(t, down)
}

// A leader that leaves while the next is there is none of the pods that the group needs; a worker that leaves is.
func TestTheLeaderBefore(t *testing.T) {
	g := Grouping{SetLabel: "s", GroupLabel: "g", WorkerLabel: "w", Size: 2}
	member := func(name, worker string, leaves bool) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"s": "set", "g": "0", "w": worker}}}
		p.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		if leaves {
			p.DeletionTimestamp = new(metav1.Time)
		}
		return p
	}
	for _, row := range []struct {
		name    string
		pods    []*corev1.Pod
		because string
	}{
		{"complete", []*corev1.Pod{member("b", "0", false), member("c", "1", false)}, ""},
		{"the leader before is still there", []*corev1.Pod{member("a", "0", true), member("b", "0", false), member("c", "1", false)}, ""},
		{"in place of a worker", []*corev1.Pod{member("a", "0", true), member("b", "0", false)}, "1 of 2 pods of its group are there"},
		{"the worker before is still there", []*corev1.Pod{member("b", "0", false), member("c", "1", false), member("d", "1", true)}, "pod d of its group: terminating"},
	} {
		replicas := g.groups(row.pods)
		require.Len(t, replicas, 1, row.name)
		require.Equal(t, [2]string{"b", row.because}, [2]string{replicas[0].Name, replicas[0].Because}, row.name)
		require.Equal(t, row.because == "", replicas[0].State == scrape.Ready, row.name)
		require.Len(t, replicas[0].Pods, len(row.pods), row.name)
	}
}

// Variants are told apart by name and target, and what is wrong with one is said of its place.
func TestWrongVariants(t *testing.T) {
	named := func(name string) Target {
		return Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "default", Name: name}
	}
	wrong := func(all ...Variant) []string {
		_, err := NewVariantLoop(VariantLoopConfig{Variants: all, Settings: Settings{Scales: new(Scales), Store: new(ConfigMapStore)}})
		return wrongFields(t, err)
	}
	require.Equal(t, []string{"group", "observer"}, wrong(Variant{Name: "a", Target: named("a")}, Variant{Name: "b", Target: named("b"), Bounds: scaling.Bounds{Max: 1}}))
	require.Equal(t, []string{"variants[1].name", "variants[1].target", "group", "observer"}, wrong(Variant{Name: "a", Target: named("a")}, Variant{Name: "a", Target: named("a")}))
	require.Equal(t, []string{"variants[0].name", "variants[0].target.name", "variants[0].bounds.max", "group", "observer"},
		wrong(Variant{Target: named(""), Bounds: scaling.Bounds{Min: 2, Max: 1}}))
	_, err := NewLoop(LoopConfig{Target: named("a"), Bounds: scaling.Bounds{Min: 2, Max: 1}, Settings: Settings{Scales: new(Scales), Store: new(ConfigMapStore)}})
	require.Equal(t, []string{"policy", "bounds.max"}, wrongFields(t, err))
}

// Without a clock of the caller's a loop waits by the time of day, and gives up on what it waits for.
func TestDefaultClock(t *testing.T) {
	s := Settings{}.orDefault()
	fire, stop := s.After(0)
	<-fire
	stop()
	require.WithinDuration(t, time.Now(), s.Now(), time.Minute)
	require.Less(t, s.Random(), 1.0)
}
