package stored_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s/api/stored"
	"github.com/inferscale/inferscale/adapters/k8s/api/v1alpha1"
)

// FuzzUnmarshal reads any bytes as one of a list of stored objects. If they are an object with metadata, no other object of the list is
// affected; what can be read is written and read back the same, and what cannot has a reason and is empty.
func FuzzUnmarshal(f *testing.F) {
	for _, text := range []string{
		object("a", "8", `{"currentReplicas":3}`), object("a", "3000000000", `{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-15T08:00:00Z","reason":"r","message":"m"}]}`),
		object("a", "8", `{"currentReplicas":1e19}`), object("a", `"many"`, `[]`), deep("a", 20), "7", "[]", "{}", `{"spec":null,"status":null,"metadata":null}`,
		strings.Replace(object("a", "8", `{}`), `"scaler":`, `"intervalSeconds":5,"shadow":[{"name":"s","scaler":{"static":{"replicas":1}}}],"attainment":{"slo":{"ttftSeconds":"2","tpotSeconds":0.1},"server":{"format":"x"}},"scaler":`, 1),
		`{"metadata":{"name":"a"},"Spec":{"maxReplicas":3},"spec":{"maxReplicas":4}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var l stored.LLMAutoScaler
		if err := json.Unmarshal(data, &l); err != nil {
			return
		}
		var list stored.LLMAutoScalerList
		good := object("good", "8", `{"currentReplicas":3}`)
		require.NoError(t, json.Unmarshal([]byte(`{"items":[`+good+`,`+string(data)+`,`+good+`]}`), &list))
		require.Len(t, list.Items, 3)
		for _, i := range []int{0, 2} {
			require.NoError(t, list.Items[i].SpecErr)
			require.Equal(t, int32(8), list.Items[i].Spec.MaxReplicas)
		}
		if l.SpecErr != nil {
			require.NotEmpty(t, l.SpecErr.Error())
			require.Equal(t, v1alpha1.LLMAutoScaler{}.Spec, l.Spec)
		}
		if l.StatusErr != nil {
			require.NotEmpty(t, l.StatusErr.Error())
			require.Equal(t, v1alpha1.LLMAutoScaler{}.Status, l.Status)
		}
		written, err := json.Marshal(l)
		require.NoError(t, err)
		var again stored.LLMAutoScaler
		require.NoError(t, json.Unmarshal(written, &again), "%s", written)
		require.NoError(t, again.SpecErr, "%s", written)
		require.NoError(t, again.StatusErr, "%s", written)
		twice, err := json.Marshal(again.DeepCopyObject())
		require.NoError(t, err)
		require.Equal(t, string(written), string(twice))
	})
}
