package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/examples/workspace/api/v1alpha1"
)

// FuzzWorkspace reads any bytes as a stored workspace: what can be read is written and read back the same, and what cannot has a reason.
func FuzzWorkspace(f *testing.F) {
	for _, text := range []string{
		`{}`, `7`, `{"spec":7}`, `{"metadata":7}`, `{"metadata":{"name":"a"},"spec":{"inference":{"preset":{"name":"phi-4","contextTokens":4096}}},"status":{"conditions":[]}}`,
		`{"metadata":{"name":"a"},"spec":{"inference":{"model":{"weights":"16Gi","parametersMillion":3000000000000}}},"status":{"observedGeneration":1e19}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var w v1alpha1.Workspace
		if json.Unmarshal(data, &w) != nil {
			return
		}
		if w.Unreadable != "" { // then a part is empty, and is not to be written
			return
		}
		written, err := json.Marshal(&w)
		require.NoError(t, err)
		var again v1alpha1.Workspace
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		require.Empty(t, again.Unreadable, "%s", written)
		twice, err := json.Marshal(&again)
		require.NoError(t, err)
		require.Equal(t, string(written), string(twice))
	})
}
