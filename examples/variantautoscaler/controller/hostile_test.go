package controller_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
)

// TestManyModelsDoNotTakeTheRequestsOfOthers: each model had its rounds when it liked, and all of them wait behind one limit of
// requests to the API server, so that a round of another namespace took longer than it may.
func TestManyModelsDoNotTakeTheRequestsOfOthers(t *testing.T) {
	const models, variants = 200, 4
	w := newWorld(t)
	w.limit = flowcontrol.NewTokenBucketRateLimiter(50, 10)
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	text := &strings.Builder{}
	text.WriteString(saturated)
	for m := range models {
		fmt.Fprintf(text, "  - name: flood-%d\n    namespace: flood\n    algorithm: saturation\n    interval: 1s\n    variants:\n", m)
		for v := range variants {
			name := fmt.Sprintf("flood-%d-%d", m, v)
			fmt.Fprintf(text, "      - {target: {apiVersion: apps/v1, kind: Deployment, name: %s}, cost: 1, min: 1, max: 4}\n", name)
			w.scales[name] = &autoscalingv1.Scale{
				ObjectMeta: metav1.ObjectMeta{Namespace: "flood", Name: name, ResourceVersion: "1"},
				Spec:       autoscalingv1.ScaleSpec{Replicas: 1}, Status: autoscalingv1.ScaleStatus{Selector: "app=" + name},
			}
		}
	}
	w.configure(t, "1", text.String())
	story(t, w)
	eventually(t, "the one of another namespace scales, and looks again and again", func() bool {
		return slices.Contains(w.done(), "write llama-a100 2") && w.looks("llama-h100") > 5
	})
}

// TestAPanicIsOfOneModel: it ended the program, and so the rounds of all models, again and again.
func TestAPanicIsOfOneModel(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	text := saturated + strings.NewReplacer("models:\n", "", "serving", "other", "llama-h100", "panics-1", "llama-a100", "panics-2").Replace(saturated)
	w.configure(t, "1", text)
	story(t, w)
	eventually(t, "the other model scales, and this one tries again", func() bool {
		return slices.Contains(w.done(), "write llama-a100 2") && w.looks("panics-1") > 1
	})
}

// TestAConfigurationThatIsTouchedIsReadOnce: each change of anything in the ConfigMap had all models read, built and told of anew.
func TestAConfigurationThatIsTouchedIsReadOnce(t *testing.T) {
	w := newWorld(t)
	w.configure(t, "1", saturated)
	watcher, events := story(t, w)
	eventually(t, "it is accepted", func() bool { return said(events, "Normal ConfigAccepted") })
	maps := w.client.CoreV1().ConfigMaps(system)
	touch := func(version int, text string) {
		_, err := maps.Update(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: system, Name: "variants", ResourceVersion: fmt.Sprint(version), Annotations: map[string]string{"touched": fmt.Sprint(version)},
			},
			Data: map[string]string{"variants.yaml": text, "notes": fmt.Sprint(version)},
		}, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	for i := range 100 {
		touch(2+i, saturated)
	}
	touch(1000, placed)
	told := 0
	eventually(t, "another one is accepted", func() bool {
		for said(events, "Normal ConfigAccepted") {
			told++
		}
		return len(watcher.Current()) == 1 && watcher.Current()[0].Hetero != nil && told > 0
	})
	require.Equal(t, 1, told)
}

// TestATargetThatIsMadeAnewInTheMiddleOfARound has no write that was meant for the one before it, and the model goes on.
func TestATargetThatIsMadeAnewInTheMiddleOfARound(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	anew := 0
	w.saving = func() { // what is intended has been stored, and is written next
		if anew++; anew > 4 {
			return
		}
		s := w.scales["llama-a100"].DeepCopy()
		s.UID, s.ResourceVersion = types.UID(fmt.Sprint("anew-", anew)), fmt.Sprint(1000+anew)
		w.scales["llama-a100"] = s
	}
	w.configure(t, "1", saturated)
	story(t, w)
	eventually(t, "it is scaled once it stays", func() bool { return slices.Contains(w.done(), "write llama-a100 2") })
	looks := w.looks("llama-a100")
	eventually(t, "some rounds more", func() bool { return w.looks("llama-a100") > looks+3 })
	writes := slices.DeleteFunc(w.done(), func(call string) bool { return !strings.HasPrefix(call, "write") })
	require.Equal(t, []string{"write llama-a100 2"}, writes)
}

// TestAConfigurationThatChangesAllTheTime costs only the models that change their rounds, and leaves nothing behind.
func TestAConfigurationThatChangesAllTheTime(t *testing.T) {
	w := newWorld(t)
	w.load["llama-h100"], w.load["llama-a100"] = 0.78, 0.78
	w.hang(t, "flood")
	changing := strings.NewReplacer("models:\n", "", "namespace: serving", "namespace: flood", "llama-h100", "flood-1", "llama-a100", "flood-2").Replace(saturated)
	for _, name := range []string{"flood-1", "flood-2"} {
		w.scales[name] = &autoscalingv1.Scale{
			ObjectMeta: metav1.ObjectMeta{Namespace: "flood", Name: name, ResourceVersion: "1"},
			Spec:       autoscalingv1.ScaleSpec{Replicas: 1}, Status: autoscalingv1.ScaleStatus{Replicas: 1, Selector: "app=" + name},
		}
	}
	w.configure(t, "1", saturated+changing)
	watcher, _ := story(t, w)
	eventually(t, "a round of pods that hang has begun", func() bool { return w.hanging() > 0 })
	goroutines := runtime.NumGoroutine()
	began := time.Now()
	for i := range 200 {
		w.configure(t, fmt.Sprint(2+i), saturated+strings.Replace(changing, "interval: 1s", fmt.Sprintf("interval: %ds", 2+i), 1))
		eventually(t, "it is in force", func() bool { return watcher.Current()[1].Interval == time.Duration(2+i)*time.Second })
	}
	t.Logf("200 changes in %v", time.Since(began))
	eventually(t, "the other model scales", func() bool { return slices.Contains(w.done(), "write llama-a100 2") && w.looks("llama-a100") > 5 })
	eventually(t, "what was begun has ended", func() bool { return runtime.NumGoroutine() < goroutines+20 })
}
