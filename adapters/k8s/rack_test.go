package k8s_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// TestRegressionARackThatDoesNotAnswerIsMissing: pods that are Ready and do not answer are missing where a round is shorter than a sweep may be.
// They ended every round with an error.
func TestRegressionARackThatDoesNotAnswerIsMissing(t *testing.T) {
	end := make(chan struct{})
	hangs := server(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-end:
		}
	})
	t.Cleanup(func() { close(end) })
	answers := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = w.Write([]byte("# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting 40\n"))
	})
	at := func(number int32) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Containers = []corev1.Container{{Name: "s", Ports: []corev1.ContainerPort{{Name: "x", ContainerPort: number}}}}
		}
	}
	var all []*corev1.Pod
	for i := range 100 {
		all = append(all, pod(fmt.Sprintf("a-%03d", i), ip("127.0.0.1"), at(hangs)))
	}
	for i := range 100 {
		all = append(all, pod(fmt.Sprintf("0-%03d", i), ip("127.0.0.1"), at(answers)))
	}
	pods, err := k8s.NewPods(lister(t, all...), k8s.Grouping{})
	require.NoError(t, err)
	scraper, err := scrape.New(scrape.Config{AllowLocal: true, Interval: 15 * time.Second})
	require.NoError(t, err)
	observer, err := k8s.NewPodObserver(pods, scraper, k8s.Port{Port: intstr.FromString("x")})
	require.NoError(t, err)
	t.Cleanup(observer.Close)

	round, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	seen, err := observer.Observe(round, []k8s.Scale{scaleOf(t, "app=llama", 200)})
	require.NoError(t, err)
	r := seen.Readings[0]
	require.Equal(t, []int32{100, 100}, []int32{r.Values, r.Failed})
	require.InDelta(t, 40*100.0/200, r.Lower, 1e-9)
	require.NoError(t, round.Err(), "there is time left to decide and to write")
}
