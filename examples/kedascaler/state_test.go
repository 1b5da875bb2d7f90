package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/inferscale/inferscale/adapters/keda"
	"github.com/inferscale/inferscale/examples/internal/cluster"
	"github.com/inferscale/inferscale/scaling"
)

// record returns what is stored of the one trigger of a ScaledObject.
func (s *site) record(t *testing.T, name string) stored {
	t.Helper()
	m, err := s.kube.CoreV1().ConfigMaps(system).Get(t.Context(), stateName(keda.Ref{Namespace: models, Name: name}), metav1.GetOptions{})
	require.NoError(t, err)
	return storedIn(t, m)
}

// A stored record, as far as the tests know it.
type stored struct {
	At       scaling.Stamp
	From, To int32
	Because  string
	Unknown  string
}

func storedIn(t *testing.T, m *corev1.ConfigMap) stored {
	t.Helper()
	require.Len(t, m.Data, 1)
	var r stored
	for _, text := range m.Data {
		require.NoError(t, json.Unmarshal([]byte(text), &r), text)
	}
	return r
}

// A scaler that was lost is replaced by one that goes on, and two of them are one.
func (s *site) testRestart(t *testing.T, p *program) {
	t.Helper()
	c := s.caller(t, p.address())
	const metric = keda.ReplicasMetric
	s.waits("copies", 20)
	s.deployment(t, "copies", 1)
	careful := s.create(t, "copies", "copies", "mode=replicas", "policy=realtime", "threshold=10", "lowThreshold=2", "interval=1", "maxReplicas=9",
		"realtime.scaleUpRule.scaleStep=1", "realtime.scaleUpRule.cooldownSeconds=600", "realtime.scaleUpRule.stabilizationWindowSeconds=1")
	kept := s.create(t, "kept", "copies", "mode=replicas", "threshold=4", "interval=60", "maxReplicas=9")
	c.comes(t, kept, metric, 5)
	c.comes(t, careful, metric, 2)
	s.deployment(t, "copies", 2)
	held := func() error { // the step was carried out, and the load would be a reason for another
		if r := s.record(t, "copies"); r.From != 2 || r.To != 2 || !strings.Contains(r.Because, "ooldown") {
			return fmt.Errorf("%+v", r)
		}
		return nil
	}
	eventually(t, held)
	before := s.record(t, "copies")

	p.kill()
	require.NoError(t, s.dynamic.Resource(authentications).Delete(t.Context(), creds, metav1.DeleteOptions{}))
	for _, pod := range s.kubelet.Pods() {
		require.NoError(t, s.kubelet.Fail(pod.Key(), cluster.Status500))
	}
	p = s.run(t, s.hooked()...)
	c = s.caller(t, p.address())
	got, err := c.known(t, kept, metric)
	require.NoError(t, err, "no page tells it any more")
	require.InDelta(t, 5, got, 0)
	for _, pod := range s.kubelet.Pods() {
		require.NoError(t, s.kubelet.Fail(pod.Key(), cluster.Healthy))
	}
	rounds := map[time.Time]bool{before.At.Time(): true}
	eventually(t, func() error {
		got, err := c.value(t.Context(), careful, metric)
		if err == nil {
			require.InDelta(t, 2, got, 0, "the cooldown of ten minutes goes on")
			r := s.record(t, "copies")
			require.EqualValues(t, 2, r.To)
			if strings.Contains(r.Because, "ooldown") {
				rounds[r.At.Time()] = true
			}
		}
		if len(rounds) < 4 {
			return fmt.Errorf("%d rounds: %+v, %w", len(rounds), s.record(t, "copies"), err)
		}
		return nil
	})
	eventually(t, func() error { return s.authenticated(t.Context()) }) // it was put back

	t.Run("Two", func(t *testing.T) { s.testTwo(t, c) })
}

// Two scalers that are asked for one trigger make each round once, and answer alike.
func (s *site) testTwo(t *testing.T, first caller) {
	t.Helper()
	second := s.caller(t, s.run(t, "-address", "127.0.0.1:0").address())
	const metric = keda.ReplicasMetric
	s.waits("copies", 4)
	name := stateName(keda.Ref{Namespace: models, Name: "pair"})
	changes, err := s.kube.CoreV1().ConfigMaps(system).Watch(t.Context(), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	require.NoError(t, err)
	defer changes.Stop()
	ref := s.create(t, "pair", "copies", "mode=replicas", "threshold=2", "interval=2", "scrapeTimeout=1500ms", "maxReplicas=50")
	var at []time.Time
	unknown := 0
	wanted := map[float64]bool{}
	answers := [2]map[float64]bool{{}, {}}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	const rounds = 6
	for len(at) < rounds {
		select {
		case event := <-changes.ResultChan():
			m, ok := event.Object.(*corev1.ConfigMap)
			require.True(t, ok, "%+v", event)
			if len(m.Data) == 0 {
				continue
			}
			r := storedIn(t, m)
			if r.Unknown != "" { // a pod was slow, and the other scaler looks at once
				unknown++
				continue
			}
			wanted[float64(r.To)] = true
			at = append(at, r.At.Time())
			s.waits("copies", 4+4*len(at)) // the next round comes to another count
		case <-tick.C:
			for i, c := range []caller{first, second} {
				if got, err := c.value(t.Context(), ref, metric); err == nil {
					answers[i][got] = true
				} else {
					requireUnavailable(t, err) // there is no round yet, or this machine was slow for some
				}
			}
		case <-deadline.C:
			require.FailNow(t, "there were too few rounds", "%v", at)
		}
	}
	last := at[len(at)-1]
	for i := range at[1:] {
		require.GreaterOrEqual(t, at[i+1].Sub(at[i]), 1800*time.Millisecond, "a round was made twice: %v", at)
	}
	t.Logf("rounds %v, wanted %v, answers %v", at, wanted, answers)
	for i := range answers {
		require.Greater(t, len(answers[i]), 1)
		for got := range answers[i] {
			require.True(t, wanted[got], "scaler %d answered %v, which no round came to: %v", i, got, wanted)
		}
	}
	// Nothing but these rounds was stored, and both end at the same.
	writes, err := s.Writes(cluster.ServiceAccountUser(system, account), "configmaps", "")
	require.NoError(t, err)
	stored := 0
	for _, w := range writes {
		if w.Name == name && w.Code < 300 && !w.Time.After(last) {
			stored++
		}
	}
	require.LessOrEqual(t, stored, rounds+unknown+1, "one may be the ConfigMap's creation")
	s.waits("copies", 3)
	eventually(t, func() error {
		one, err := first.value(t.Context(), ref, metric)
		if err != nil {
			return err
		}
		two, err := second.value(t.Context(), ref, metric)
		if err == nil && (one != two || one != float64(s.record(t, "pair").To)) {
			err = fmt.Errorf("%v and %v", one, two)
		}
		return err
	})
}

// What is kept of ScaledObjects that are gone is removed an hour after it was made.
func (s *site) testSweep(t *testing.T) {
	m, err := ctrl.NewManager(s.Config(), manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	defer func() {
		cancel()
		require.NoError(t, <-ended)
	}()
	sweep := &process{options: &options{namespace: system}, logger: slog.New(slog.DiscardHandler), manager: m, kube: s.kube}
	others := s.kube.CoreV1().ConfigMaps(system)
	_, err = others.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "somebody-elses"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	states := func() []string {
		list, err := others.List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		var names []string
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names
	}
	gone := stateName(keda.Ref{Namespace: models, Name: "kept"})
	require.Contains(t, states(), gone)
	require.NoError(t, s.dynamic.Resource(scaledObjects).Namespace(models).Delete(ctx, "kept", metav1.DeleteOptions{}))
	eventually(t, func() error {
		u := scaledObject()
		err := m.GetCache().Get(ctx, types.NamespacedName{Namespace: models, Name: "kept"}, u)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the cache has it: %w", err)
	})
	now := time.Now()
	require.NoError(t, sweep.sweep(ctx, now))
	require.Contains(t, states(), gone, "it may be that of a ScaledObject that is not in the cache yet")
	before := states()
	require.NoError(t, sweep.sweep(ctx, now.Add(sweepAge+time.Minute)))
	after := slices.DeleteFunc(before, func(name string) bool { return name == gone })
	require.Equal(t, after, states())
	require.Contains(t, after, stateName(keda.Ref{Namespace: models, Name: "pair"}))
	require.Contains(t, after, "somebody-elses")
}
