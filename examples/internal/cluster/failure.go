package cluster

import (
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/types"
)

// A Failure is how a pod misbehaves.
type Failure int

// The failures of pods. The zero value is none.
const (
	Healthy Failure = iota
	Hang            // requests get no answer
	Status500
	Refuse  // connections are refused
	Garbage // the page is not one of metrics
)

// String is the failure's name.
func (f Failure) String() string {
	return [...]string{"Healthy", "Hang", "Status500", "Refuse", "Garbage"}[f]
}

// Fail breaks what a pod serves, or repairs it with [Healthy]. The pod stays ready, as one without a readiness probe
// does. The effect is there when Fail returns; a request that hangs goes on hanging.
func (k *Kubelet) Fail(pod types.NamespacedName, f Failure) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failures[pod] = f
	if s := k.pods[pod]; s != nil && s.loaded {
		return k.serve(s)
	}
	return nil // it does not serve yet
}

// SetReady lets a pod lose its readiness while it serves on, or have it back. Its status follows in a moment.
func (k *Kubelet) SetReady(pod types.NamespacedName, ready bool) {
	k.mu.Lock()
	if ready {
		delete(k.unready, pod)
	} else {
		k.unready[pod] = true
	}
	k.mu.Unlock()
	k.queue.Add(pod)
}

// handler serves a pod's page, or its failure.
func (k *Kubelet) handler(pod types.NamespacedName) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k.mu.Lock()
		s := k.pods[pod]
		if s == nil {
			k.mu.Unlock()
			panic(http.ErrAbortHandler) // it is gone, and so is this connection
		}
		described := k.describe(s)
		k.mu.Unlock()
		switch described.Failure {
		case Hang:
			<-r.Context().Done()
			return
		case Status500:
			http.Error(w, "injected failure", http.StatusInternalServerError)
			return
		case Garbage:
			_, _ = io.WriteString(w, "<html>\x00 vllm:num_requests_waiting{ NaN NaN\n")
			return
		case Healthy, Refuse: // who refuses does not come here
		}
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(render(k.options.Metrics(described), k.options.Model))
	})
}
