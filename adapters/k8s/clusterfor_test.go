package k8s_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/scrape"
)

// The Settings of a cluster look at its pods and store in it, without more being said.
func TestClusterSettings(t *testing.T) {
	client := fake.NewClientset(pod("a", notReady), pod("b", notReady))
	cluster := &k8s.Cluster{Client: client, Scales: newCluster(2).Scales()}
	settings, err := cluster.Settings(t.Context(), target, scrape.Named(waiting))
	require.NoError(t, err)
	l, err := k8s.NewLoop(k8s.LoopConfig{Target: target, Policy: policy(t), Settings: settings})
	require.NoError(t, err)
	out := tick(t, l)
	require.EqualValues(t, 2, out.View().NotReady)
	require.EqualValues(t, 2, out.Observed.Readings[0].NotReady)
	state, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "inferscale-deployment-llama", metav1.GetOptions{})
	require.NoError(t, err)
	require.Contains(t, state.Data["state"], `"id":"uid-llama"`)

	// Kinds of the same name in two groups shared one state, and cooldowns were lost.
	for _, group := range []string{"kaito.sh", "workspace.inferscale.io"} {
		other := k8s.Target{APIVersion: group + "/v1", Kind: "Workspace", Namespace: "default", Name: "llama"}
		settings, err = cluster.Settings(t.Context(), other)
		require.NoError(t, err)
		require.NoError(t, settings.Store.Save(t.Context(), "state", nil, []byte("{}")))
		_, err = client.CoreV1().ConfigMaps("default").Get(t.Context(), "inferscale-workspace."+group+"-llama", metav1.GetOptions{})
		require.NoError(t, err)
	}

	settings, err = cluster.Settings(t.Context(), target)
	require.NoError(t, err)
	require.Nil(t, settings.Observer, "nothing is asked for nothing")
}

// A kind that is installed while the program runs is found.
func TestForKindInstalledLater(t *testing.T) {
	const group, version = "leaderworkerset.x-k8s.io", "leaderworkerset.x-k8s.io/v1"
	var installed atomic.Bool
	var discoveries atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		say := func(o any) { _ = json.NewEncoder(w).Encode(o) }
		list := func(version, name, kind string) {
			say(metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: version, APIResources: []metav1.APIResource{
				{Name: name, Kind: kind, Namespaced: true},
				{Name: name + "/scale", Kind: "Scale", Group: "autoscaling", Version: "v1", Namespaced: true},
			}})
		}
		switch r.URL.Path {
		case "/api":
			say(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
		case "/api/v1":
			list("v1", "replicationcontrollers", "ReplicationController")
		case "/apis":
			discoveries.Add(1)
			groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}}
			if installed.Load() {
				v := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: "v1"}
				groups.Groups = []metav1.APIGroup{{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v}}
			}
			say(groups)
		case "/apis/" + version:
			list(version, "leaderworkersets", "LeaderWorkerSet")
		default:
			say(autoscalingv1.Scale{
				TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
				ObjectMeta: metav1.ObjectMeta{Name: "llama", Namespace: "default", ResourceVersion: "1"}, Spec: autoscalingv1.ScaleSpec{Replicas: 2},
			})
		}
	}))
	defer server.Close()
	c, err := k8s.For(&rest.Config{Host: server.URL})
	require.NoError(t, err)
	get := func(apiVersion, kind string) error {
		_, err := c.Scales.Get(t.Context(), k8s.Target{APIVersion: apiVersion, Kind: kind, Namespace: "default", Name: "llama"})
		return err
	}
	require.NoError(t, get("v1", "ReplicationController"))
	installed.Store(true)
	require.NoError(t, get(version, "LeaderWorkerSet"))
	require.EqualValues(t, 2, discoveries.Load())
	for range 10 {
		require.ErrorIs(t, get("none.io/v1", "None"), k8s.ErrNoScale)
	}
	require.EqualValues(t, 2, discoveries.Load())
}

// TestSettingsWithoutAClient: a Cluster that was not filled in was a panic.
func TestSettingsWithoutAClient(t *testing.T) {
	_, err := new(k8s.Cluster).Settings(context.Background(), target)
	require.EqualError(t, err, "client: <nil>: must be set")
}
