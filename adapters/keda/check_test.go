package keda

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/build"
	"github.com/inferscale/inferscale/internal/typed"
	"github.com/inferscale/inferscale/scaling"
)

// TestCheck: of a ScaledObject all that this scaler would refuse is told at once, with the path of each field, and nothing of
// triggers that are not its own.
func TestCheck(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
	require.NoError(t, err)
	const ours = "{type: external, metadata: {scalerName: keda-kaito-scaler, threshold: '10'%s}}"
	one := func(more string) string { return fmt.Sprintf(ours, more) }
	for _, row := range []struct {
		spec string
		want []string
	}{
		{"scaleTargetRef: {name: chat}, triggers: [" + one("") + "]", nil},
		{"scaleTargetRef: {name: chat}, triggers: [" + one(", metricPort: '0'") + "]", []string{"spec.triggers[0].metadata.metricPort: 0: must be between 1 and 65535"}},
		{"scaleTargetRef: {name: chat}, triggers: [{type: cron}, " + one(", interval: 1ms, aggregation: Mean") + ", " + one("") + "]", []string{
			`spec.triggers[1].metadata.interval: "1ms": must be seconds or a duration, as 5 or "5s", between 1s and 1h0m0s`,
			`spec.triggers[1].metadata.aggregation: "Mean": must be one of Only, Sum, Average, Max and Min`,
		}},
		{"scaleTargetRef: {name: chat}, triggers: [{type: external, metadata: {scalerName: theirs}}]", nil},
		{"scaleTargetRef: {name: chat}, triggers: [{type: external-push, metadata: {scalerName: keda-kaito-scaler}}]", []string{`spec.triggers[0].metadata.threshold: "": must be given in mode metric`}},
		{"scaleTargetRef: {name: chat}, triggers: [{type: metrics-api, metadata: {scalerName: keda-kaito-scaler}}]", nil},
		{"scaleTargetRef: {name: chat}, triggers: [{type: external, metadata: {scalerName: keda-kaito-scaler, thresholdFromEnv: X}}]", nil},
		// What is wrong elsewhere is told where a trigger of ours needs it, and the trigger is judged all the same.
		{"minReplicaCount: -1, triggers: [" + one(", metricPort: '0'") + "]", []string{
			"spec.triggers[0].metadata.metricPort: 0: must be between 1 and 65535",
			`spec.scaleTargetRef.name: "": must not be empty`, "spec.minReplicaCount: -1: must be at least 0",
		}},
		{"triggers: [" + one(", metricPort: '0'") + "]", []string{
			"spec.triggers[0].metadata.metricPort: 0: must be between 1 and 65535", `spec.scaleTargetRef.name: "": must not be empty`,
		}},
		{"triggers: [{type: external, metadata: {scalerName: theirs}}]", nil},
		{"triggers: [{type: external, metadata: {scalerName: keda-kaito-scaler, thresholdFromEnv: X}}]", []string{`spec.scaleTargetRef.name: "": must not be empty`}},
	} {
		var got []string
		for _, e := range typed.Split(triggers.Check(manifest(t, "spec: {"+row.spec+"}").Object)) {
			got = append(got, e.Error())
		}
		require.Equal(t, row.want, got, row.spec)
	}
}

// TestWhatFollows: of a field that is part of another nothing is said beside what was said of that.
func TestWhatFollows(t *testing.T) {
	of := func(field string) error { return &scaling.FieldError{Field: field} }
	for _, row := range []struct {
		field, said string
		follows     bool
	}{
		{"a", "a", true}, {"a.b", "a", true}, {"a[0]", "a", true}, {"ab", "a", false}, {"a", "a.b", false}, {"b", "a", false},
	} {
		require.Equal(t, row.follows, follows(of(row.field), []error{of(row.said)}), "%s after %s", row.field, row.said)
	}
	require.False(t, follows(of("a"), []error{errors.New("no field")}))
	require.False(t, follows(errors.New("no field"), []error{of("a")}))
	require.False(t, follows(of("a"), nil))
}

// TestWhatIsFromTheEnvironment is the value of a key with FromEnv, and of the fields within it.
func TestWhatIsFromTheEnvironment(t *testing.T) {
	keys := map[string]string{"scaler": "scalerFromEnv", "other": "other", "metricPath": "metricPath"}
	for key, want := range map[string]bool{
		"scaler": true, "scaler.realtime": true, "scaler[0]": true, "scalerName": false, "other": false, "other.a": false, "unknown": false,
	} {
		require.Equal(t, want, secret(keys, key), key)
	}
}

// TestWhatIsVeiled is what is long enough to be a secret.
func TestWhatIsVeiled(t *testing.T) {
	m := Metadata{sent: map[string]string{"aFromEnv": " sixsix ", "bFromEnv": "five5", "c": "public"}}
	require.EqualError(t, m.veiled(errors.New("get sixsix, five5 and public")), "get (not shown), five5 and public")
	require.NoError(t, m.veiled(nil))
	m = Metadata{sent: map[string]string{"aFromEnv": "https://h", "bFromEnv": "https://h/secret", "cFromEnv": "/secret"}}
	for range 20 { // in the order of a map the rest of the longest could stay
		require.EqualError(t, m.veiled(errors.New("get https://h/secret")), "get (not shown)")
	}
}

// TestMetadataOf32KiB are taken, and not a byte more.
func TestMetadataOf32KiB(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
	require.NoError(t, err)
	metadata := inMetric()
	size := 0
	for key, value := range metadata {
		size += len(key) + len(value)
	}
	metadata["x"] = strings.Repeat("x", 32<<10-size-1)
	_, err = triggers.Build(chat, metadata)
	require.NoError(t, err)
	metadata["x"] += "x"
	_, err = triggers.Build(chat, metadata)
	require.ErrorContains(t, err, "metadata: 32769: must be at most 32768 bytes")
}

// TestUnknownKeysAreLogged, as they may be what was meant.
func TestUnknownKeysAreLogged(t *testing.T) {
	var j journal
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless, Logger: j.logger()})
	require.NoError(t, err)
	_, err = triggers.Build(chat, inMetric())
	require.NoError(t, err)
	require.Empty(t, j.String())
	_, err = triggers.Build(chat, inMetric("metricname", "q", "metricPorotocol", "http"))
	require.NoError(t, err)
	require.Contains(t, j.String(), `warning="unknown keys" keys=[metricname]`)
	require.Contains(t, j.String(), `warning="metricPorotocol: is spelt metricProtocol"`)
}

// TestPlansSayWhoseStateTheyHave: two triggers of one state are told apart by the engine.
func TestPlansSayWhoseStateTheyHave(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless, Objects: func(Ref) (Object, error) { return newWorld(t).object, nil }})
	require.NoError(t, err)
	for _, metadata := range []map[string]string{metricMode(), replicasMode()} {
		plan, err := triggers.Build(chat, metadata)
		require.NoError(t, err)
		require.Equal(t, identityIn(metadata), plan.Identity)
	}
}

// TestPodsThatCannotBeAsked: in mode metric the target stays, and in mode replicas what has replicas does.
func TestPodsThatCannotBeAsked(t *testing.T) {
	for _, row := range []struct {
		metadata map[string]string
		replicas int32
		active   bool
	}{{metricMode(), 0, true}, {metricMode(), 1, true}, {replicasMode(), 0, false}, {replicasMode(), 1, true}} {
		w := newWorld(t)
		w.replicas(row.replicas)
		triggers, err := NewTriggers(TriggersConfig{
			Scales: w, Observe: func(*build.Plan) (Observer, error) { return blind{}, nil }, Objects: func(Ref) (Object, error) { return w.object, nil },
		})
		require.NoError(t, err)
		plan, err := triggers.Build(chat, row.metadata)
		require.NoError(t, err)
		s := w.round(plan.Trigger)
		require.EqualError(t, s.Unknown, "no selector")
		require.Equal(t, row.active, s.Active)
		require.NoError(t, s.ActiveUnknown)
	}
}

// blind is an Observer that finds no pods to ask.
type blind struct{}

func (blind) Observe(context.Context, []k8s.Scale) (k8s.Observed, error) {
	return k8s.Observed{}, errors.New("no selector")
}
func (blind) Close() {}

// TestWhatIsBuiltAnewIsClosedBefore: the connections of what was built for another ScaledObject end.
func TestWhatIsBuiltAnewIsClosedBefore(t *testing.T) {
	w := newWorld(t)
	w.load(15)
	trigger := w.trigger(replicasMode())
	w.round(trigger)
	require.Zero(t, w.closed.Load())
	w.object.Max = 19
	w.next(trigger)
	require.EqualValues(t, 1, w.closed.Load())
}

// TestPagesOf2MiB: the pods of all who have a ScaledObject share the scaler's memory.
func TestPagesOf2MiB(t *testing.T) {
	m := parsed(t, inMetric())
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, plan.Scrape.MaxBody)
}

// TestHowPodsAreAskedByADocument: where no key says otherwise.
func TestHowPodsAreAskedByADocument(t *testing.T) {
	const text = "intervalSeconds: 4\nscrape: {portName: web, tls: {serverName: pod.test}}\nscaler: {realtime: {metrics: [{threshold: {high: 2, low: 1}}]}}\n"
	m := parsed(t, inDocument(text))
	require.Equal(t, "2s", m.ScrapeTimeout.String(), "half an interval")
	require.Equal(t, "pod.test", m.TLS.ServerName)
	plan, err := m.plan(chatTarget, oneToTen)
	require.NoError(t, err)
	require.Equal(t, "pod.test", plan.Scrape.TLS.ServerName)
	require.Equal(t, "web", plan.Port.Port.StrVal)
	m = parsed(t, inDocument(text, "scrapeTimeout", "1", "tlsServerName", "other.test"))
	require.Equal(t, "1s", m.ScrapeTimeout.String())
	require.Equal(t, "other.test", m.TLS.ServerName)
	m = parsed(t, inDocument(strings.Replace(text, "intervalSeconds: 4", "intervalSeconds: 60", 1)))
	require.Equal(t, DefaultScrapeTimeout, m.ScrapeTimeout)
	require.Equal(t, "policy.realtime.metrics[0].threshold.high", func() string { _, written := m.keyOf("spec.scaler.realtime.metrics[0].threshold.high"); return written }())
}

// TestFieldsOfATarget are told by the key that has them, and else as what they are.
func TestFieldsOfATarget(t *testing.T) {
	given := parsed(t, inMetric("targetName", "t", "targetNamespace", "n", "targetAPIVersion", "apps/v1", "targetKind", "Deployment"))
	not := parsed(t, inMetric())
	for path, key := range map[string]string{
		"target.name": "targetName", "target.namespace": "targetNamespace", "target.apiVersion": "targetAPIVersion", "target.kind": "targetKind",
	} {
		got, _ := given.keyOf(path)
		require.Equal(t, key, got)
		got, _ = not.keyOf(path)
		require.Equal(t, path, got)
	}
	for path, key := range map[string]string{
		"spec.intervalSeconds": "interval", "spec.scrape.portName": "metricPort", "timeout": "scrapeTimeout", "spec.scrape.tls.serverName": "tlsServerName",
	} {
		got, _ := not.keyOf(path)
		require.Equal(t, key, got)
	}
}

// TestKeysOfRules: a field is told by the key that goes with threshold, or by its path.
func TestKeysOfRules(t *testing.T) {
	profiled := parsed(t, inReplicas("lowThreshold", "1", "profile", "kaito"))
	plain := parsed(t, inReplicas("lowThreshold", "1"))
	for path, key := range map[string]string{
		"realtime.profile": "profile", "realtime.holdWhilePending": "realtime.holdWhilePending", "proportional.profile": "proportional.profile",
		"realtime.metrics[0].threshold.high": "threshold", "realtime.metrics[0].threshold.low": "lowThreshold",
		"realtime.metrics[0].source": "metricName", "realtime.metrics[0].source.port": "metricPort", "realtime.metrics[0].source.labels[0]": "labels",
		"realtime.metrics[0].source.engine": "engine", "realtime.metrics[1].source.port": "realtime.metrics[1].source.port",
	} {
		require.Equal(t, key, profiled.ruleKey(path), path)
	}
	require.Equal(t, "realtime.profile", plain.ruleKey("realtime.profile"))
}

// TestWhoSharesAState: triggers in mode replicas that read the same of the same, and no other.
func TestWhoSharesAState(t *testing.T) {
	shares := func(metadata map[string]string, others ...map[string]string) bool {
		all := []external{{Metadata: metadata}}
		for _, other := range others {
			all = append(all, external{Metadata: other})
		}
		m := parsed(t, metadata)
		return m.shares(Object{}.with(all))
	}
	require.False(t, shares(inReplicas()))
	require.True(t, shares(inReplicas(), inReplicas("threshold", "20")))
	require.False(t, shares(inReplicas(), inMetric()), "mode metric has no state")
	require.False(t, shares(inReplicas(), inReplicas("metricName", "other")))
	require.False(t, shares(inReplicas(), inReplicas("threshold", "wrong")))
	require.False(t, shares(inMetric(), inMetric()))
}

// TestBoundsAreToldOnce: a maximum may be the minimum, and one below it is told once, by its key.
func TestBoundsAreToldOnce(t *testing.T) {
	triggers, err := NewTriggers(TriggersConfig{Scales: newWorld(t), Observe: podless})
	require.NoError(t, err)
	_, err = triggers.Build(chat, inReplicas("minReplicas", "3", "maxReplicas", "3"))
	require.NoError(t, err)
	_, err = triggers.Build(chat, inReplicas("minReplicas", "3", "maxReplicas", "2"))
	require.EqualError(t, err, "maxReplicas: 2: must be at least minReplicas 3")
}

// TestNamesOfFields are letters and digits.
func TestNamesOfFields(t *testing.T) {
	for name, none := range map[string]bool{
		"azAZ09": false, "": true, "`": true, "{": true, "@": true, "[": true, "/": true, ":": true, "a-b": true, "ä": true,
	} {
		require.Equal(t, none, isNoName(name), name)
	}
}

// TestSends: KEDA may have filled in what is from the environment, and nothing else differs.
func TestSends(t *testing.T) {
	trigger := external{Metadata: map[string]string{"a": "1", "bFromEnv": "NAME"}}
	for _, row := range []struct {
		sent map[string]string
		want bool
	}{
		{map[string]string{"a": "1", "bFromEnv": "value"}, true},
		{map[string]string{"a": "1"}, true},
		{map[string]string{"a": "2", "bFromEnv": "value"}, false},
		{map[string]string{"bFromEnv": "value"}, false},
		{map[string]string{"a": "1", "c": "3"}, false},
	} {
		require.Equal(t, row.want, trigger.sends(row.sent), "%v", row.sent)
	}
}

// TestWhoseMetricType: external and external-push triggers are those of external scalers.
func TestWhoseMetricType(t *testing.T) {
	o, err := ObjectOf(manifest(t, "spec: {scaleTargetRef: {name: chat}, triggers: [{type: external}, {type: cron}, {type: external-push}]}"))
	require.NoError(t, err)
	all := o.externals()
	require.Len(t, all, 2)
	require.Equal(t, [2]string{"external", "external-push"}, [2]string{all[0].Type, all[1].Type})
	require.Equal(t, [2]int{0, 2}, [2]int{all[0].Index, all[1].Index})
}

// TestTheGreatestValue can be sent, and no greater one.
func TestTheGreatestValue(t *testing.T) {
	_, err := specResponse(Spec{"q", greatestValue})
	require.NoError(t, err)
	_, err = specResponse(Spec{"q", leastTarget})
	require.NoError(t, err)
	_, err = specResponse(Spec{"q", greatestValue * 1.001})
	require.Error(t, err)
	_, err = specResponse(Spec{"q", leastTarget / 2})
	require.Error(t, err)
	r := scaling.Reading{Metric: "q", Values: 1, Lower: greatestValue, Upper: greatestValue}
	value, _, err := metricValue(AverageValue, 10, r, 1, 1)
	require.NoError(t, err)
	require.InDelta(t, greatestValue, value, 0)
	r.Lower, r.Upper = greatestValue*1.001, greatestValue*1.001
	_, _, err = metricValue(AverageValue, 10, r, 1, 1)
	require.Error(t, err)
	s := newStage(t, nil)
	metadata := s.add("a", &fakeTrigger{answer: func(int) (Snapshot, error) { return Snapshot{Value: greatestValue}, nil }})
	s.value(chat, metadata)
	answer, err := NewServer(s.engine).GetMetrics(t.Context(), asked(chat, metadata, "q"))
	require.NoError(t, err)
	require.InDelta(t, greatestValue, answer.GetMetricValues()[0].GetMetricValueFloat(), 0)
}
