package estimate_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/inferscale/inferscale/examples/workspace/estimate"
)

// FuzzReadInstances: any text is a table of valid instance types, which is written and read back the same, or an error.
func FuzzReadInstances(f *testing.F) {
	whole, err := yaml.Marshal(estimate.AzureInstances())
	require.NoError(f, err)
	f.Add(whole)
	for _, text := range []string{"", "{}", "a: {gpus: 1, gpuMemoryGiB: 80}", "a: {gpus: 0}", "a: {gpus: 1e3, gpuMemoryGiB: 0x10}", "a: {GPUS: 1, gpus: 2}", "a: &a {x: *a}", "? [a]\n: 1\n", "a: null", "a: {gpus: 1, gpuMemoryGiB: 3000000000}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := estimate.ReadInstances(bytes.NewReader(data))
		if err != nil {
			require.Nil(t, all)
			require.NotEmpty(t, err.Error())
			return
		}
		require.NotEmpty(t, all)
		for _, i := range all {
			require.NoError(t, i.Valid())
		}
		text, err := yaml.Marshal(all)
		require.NoError(t, err)
		again, err := estimate.ReadInstances(bytes.NewReader(text))
		require.NoError(t, err, "%s", text)
		require.Equal(t, all, again)
	})
}
