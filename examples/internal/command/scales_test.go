package command

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/inferscale/inferscale/adapters/k8s"
)

// A target of an unknown kind, or of an API that does not answer, delays no other target: a manager's mapper locks out all who
// ask for any kind while it asks the API server for one.
func TestScalesOfUnknownKinds(t *testing.T) {
	var asked atomic.Int32
	hung, answer := make(chan struct{}), make(chan struct{})
	var once sync.Once
	release := func() { once.Do(func() { close(answer) }) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		say := func(o any) { _ = json.NewEncoder(w).Encode(o) }
		switch {
		case r.URL.Path == "/api":
			say(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case r.URL.Path == "/apis":
			v := metav1.GroupVersionForDiscovery{GroupVersion: "apps/v1", Version: "v1"}
			say(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}, Groups: []metav1.APIGroup{
				{Name: "apps", Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v},
			}})
		case r.URL.Path == "/apis/apps/v1":
			asked.Add(1)
			say(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
				{Name: "deployments", Kind: "Deployment", Namespaced: true},
			}})
		case strings.HasPrefix(r.URL.Path, "/apis/external.metrics.k8s.io/"):
			close(hung)
			<-answer
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			say(autoscalingv1.Scale{
				TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
				ObjectMeta: metav1.ObjectMeta{Name: "chat", Namespace: "good", ResourceVersion: "1"}, Spec: autoscalingv1.ScaleSpec{Replicas: 2},
			})
		}
	}))
	defer server.Close()
	defer release()
	config := &rest.Config{Host: server.URL, QPS: -1}
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	dynamic, err := apiutil.NewDynamicRESTMapper(config, client) // that of a manager
	require.NoError(t, err)
	scales, mapper, err := Scales(config, client, dynamic)
	require.NoError(t, err)
	get := func(apiVersion, kind string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err := scales.Get(ctx, k8s.Target{APIVersion: apiVersion, Kind: kind, Namespace: "good", Name: "chat"})
		return err
	}
	require.NoError(t, get("apps/v1", "Deployment"))
	before := asked.Load()
	for range 10 {
		require.ErrorIs(t, get("apps/v1", "None"), k8s.ErrNoScale)
	}
	require.Equal(t, before+1, asked.Load(), "requests for an unknown kind")

	evil, good := make(chan error, 1), make(chan error, 1)
	go func() { evil <- get("external.metrics.k8s.io/v1", "None") }()
	<-hung
	go func() {
		_, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "v1")
		good <- err
		good <- get("apps/v1", "Deployment")
	}()
	for range 2 {
		select {
		case err := <-good:
			require.NoError(t, err)
		case <-time.After(5 * time.Second):
			require.Fail(t, "a round waits for another's unknown kind")
		}
	}
	release()
	require.Error(t, <-evil)
	require.Error(t, get("external.metrics.k8s.io/v1", "None"), "it would close the channel again")
}
