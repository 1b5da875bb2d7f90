package controller_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/api/crd"
)

// TestNoStatusIsWrittenForPartsOfAMillisecond: while nothing happens, the end of the cooldown stays, whenever rounds begin.
func TestNoStatusIsWrittenForPartsOfAMillisecond(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 3600"))
	w.queue(20)
	for range 12 {
		w.round("chat")
	}
	require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
	until := w.get("chat").Status.CooldownUntil.UTC()
	before, began := w.statuses, w.now
	for i := range 40 {
		w.now = w.now.Truncate(time.Millisecond).Add(time.Millisecond + time.Duration(i%2)*400*time.Microsecond)
		require.Equal(t, until, w.round("chat").Status.CooldownUntil.UTC())
	}
	require.LessOrEqual(t, w.statuses-before, int(w.now.Sub(began)/(5*time.Minute))+1, "only to refresh the numbers")
}

// TestContendedIsUnknownWithoutARound: where the spec was refused, the condition stayed True for ever.
func TestContendedIsUnknownWithoutARound(t *testing.T) {
	w := newWorld(t)
	w.deployment(2)
	w.apply(chat)
	w.queue(20)
	contended := func() string { return condition(w.get("chat"), k8s.ConditionContended) }
	for range 400 {
		w.targets["chat"].Spec.Replicas = 2
		w.targets["chat"].ResourceVersion += "x"
		w.round("chat")
		if contended() != "absent" {
			break
		}
	}
	require.Equal(t, "True Contended", contended())
	w.apply(strings.Replace(chat, "high: 10, low: 2", "high: 1, low: 2", 1))
	w.round("chat")
	require.Equal(t, "False InvalidSpec", condition(w.get("chat"), k8s.ConditionReady))
	require.Equal(t, "Unknown InvalidSpec", contended())
	w.queue(5)
	w.apply(chat)
	for range 500 { // the loop remembers for how long it leaves the target alone
		if w.round("chat"); strings.HasPrefix(contended(), "False") {
			break
		}
	}
	require.Equal(t, "False NoOtherWriter", contended(), "it comes back from Unknown")
}

// TestADryRunOfAnotherTargetDoesNotWait: a dry run of another target waited for the cooldown of the former one. One of the same
// target still does, also after a spec that is refused.
func TestADryRunOfAnotherTargetDoesNotWait(t *testing.T) {
	long := strings.ReplaceAll(chat, "cooldownSeconds: 60", "cooldownSeconds: 600")
	for name, least := range map[string]time.Duration{"other": 0, "chat": 8 * time.Minute} {
		w := newWorld(t)
		w.deployment(2)
		w.apply(long)
		w.queue(20)
		w.round("chat")
		w.round("chat")
		require.EqualValues(t, 3, w.targets["chat"].Spec.Replicas)
		w.targets["other"] = w.targets["chat"].DeepCopy()
		w.targets["other"].Name, w.targets["other"].UID = "other", "other"
		dry := strings.Replace(long, "name: chat}\n  max", "name: "+name+"}\n  dryRun: true\n  max", 1)
		w.apply(strings.Replace(dry, "high: 10, low: 2", "high: 1, low: 2", 1))
		w.round("chat")
		w.apply(dry)
		began := w.now
		for w.now.Sub(began) < 15*time.Minute && w.round("chat").Status.LastDecision.Verdict != "Up" {
			require.Equal(t, name == "other", w.get("chat").Status.LastScaleTime == nil)
		}
		require.GreaterOrEqual(t, w.now.Sub(began), least)
		require.Less(t, w.now.Sub(began), least+2*time.Minute)
	}
}

// TestEventsOfInvalidSpecsAreCut: 64 schedules that are wrong made an event, and a log line, of 20 kB.
func TestEventsOfInvalidSpecsAreCut(t *testing.T) {
	var logged strings.Builder
	w := newWorld(t)
	w.config.Logger = logTo(&logged)
	w.restart()
	w.deployment(2)
	text := "metadata: {name: chat}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}\n  maxReplicas: 8\n  scaler:\n    cron:\n      policies:\n"
	for i := range 64 {
		text += fmt.Sprintf("      - {name: n%d, schedule: '1%s 99 * * *', targetReplicas: 1}\n", i, strings.Repeat(",1", 90))
	}
	w.apply(text)
	w.round("chat")
	require.Len(t, w.events.Events, 1)
	said := <-w.events.Events
	require.Contains(t, said, "Warning InvalidSpec ")
	require.LessOrEqual(t, len(said), 1024+len("Warning InvalidSpec "))
	require.Contains(t, logged.String(), "not ready")
	require.Less(t, logged.Len(), 2048)
}

// TestRegressionAStatusOfManyReadingsIsWritten: a spec may have 18 metrics, a status 16. The API server refused the whole status, in each
// round again.
func TestRegressionAStatusOfManyReadingsIsWritten(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	w.queue(5)
	var thresholds, targets strings.Builder
	for i := range 8 {
		fmt.Fprintf(&thresholds, "{source: {name: r%d, port: PORT}, threshold: {high: 10, low: 1}},", i)
		fmt.Fprintf(&targets, "{source: {name: p%d, port: PORT}, target: 10},", i)
	}
	w.apply("metadata: {name: chat}\nspec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: chat}\n  maxReplicas: 8\n  scaler:\n" +
		"    realtime: {metrics: [" + thresholds.String() + "]}\n    proportional: {metrics: [" + targets.String() + "]}\n    saturation: {}\n")
	require.Len(t, w.round("chat").Status.Metrics, mostItems(t, "metrics"))
}

// mostItems is how many items the definition allows in a list of the status.
func mostItems(t *testing.T, list string) int {
	t.Helper()
	var definition apiextensionsv1.CustomResourceDefinition
	require.NoError(t, yaml.Unmarshal([]byte(crd.LLMAutoScaler()), &definition))
	status := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	require.NotNil(t, status.Properties[list].MaxItems)
	return int(*status.Properties[list].MaxItems)
}
