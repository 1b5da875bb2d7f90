package k8s_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

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
