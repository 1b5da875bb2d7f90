package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// TestOneUnreadableWorkspace leaves the list that it is part of as it is.
func TestOneUnreadableWorkspace(t *testing.T) {
	var list v1alpha1.WorkspaceList
	require.NoError(t, json.Unmarshal([]byte(`{"items": [
		{"metadata": {"name": "a"}, "spec": {"inference": {"replicas": 2}}},
		{"metadata": {"name": "b"}, "spec": {"inference": {"replicas": 3000000000}}},
		{"metadata": {"name": "c"}, "spec": {"inference": {"model": {"weights": "1e1.5"}}}}
	]}`), &list))
	require.Empty(t, list.Items[0].Unreadable)
	require.EqualValues(t, 2, *list.Items[0].Spec.Inference.Replicas)
	require.Equal(t, "b", list.Items[1].Name)
	require.Contains(t, list.Items[1].Unreadable, "3000000000")
	require.Nil(t, list.Items[1].Spec.Inference)
	require.Contains(t, list.Items[2].Unreadable, "quantities must match")
}
