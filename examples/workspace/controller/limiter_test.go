package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
)

// TestRegressionAWorkspaceIsTriedAgainWithinAMinute: nothing tells the controller that the Deployment of somebody else is gone,
// or that a quota or somebody's webhook lets it in: after some failures it looked again in a quarter of an hour.
func TestRegressionAWorkspaceIsTriedAgainWithinAMinute(t *testing.T) {
	failing := ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "models", Name: "llama"}}
	l := limiter()
	require.Less(t, l.When(failing), time.Second)
	for range 40 {
		require.LessOrEqual(t, l.When(failing), time.Minute)
	}
}
