package policy_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/policy"
)

// TestRegressionPortAsWritten: ports that an API server refuses, as "0080" and "+80", were read as 80.
func TestRegressionPortAsWritten(t *testing.T) {
	manifest := func(port string) string {
		return head + "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n  maxReplicas: 3\n" +
			"  scaler: {proportional: {metrics: [{source: {name: a, port: " + port + "}, target: 1}]}}\n"
	}
	bare := func(port string) string {
		return "proportional: {metrics: [{source: {name: a, port: " + port + "}, target: 1}]}"
	}
	for _, text := range []string{"0080", "+80", "-0", "00", "", " 80", "8_0"} {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		_, err = policy.Read([]byte(manifest(string(quoted))), "p.yaml")
		require.ErrorContains(t, err, "p.yaml:7: spec.scaler.proportional.metrics[0].source.port: "+string(quoted)+": must be the number of a port")
		_, err = policy.Read([]byte(bare(string(quoted))), "p.yaml")
		require.ErrorContains(t, err, "must be the number of a port")
		var port policy.PortNumber
		require.EqualError(t, json.Unmarshal(quoted, &port), "port "+string(quoted)+": must be a whole number")
	}
	_, err := policy.Read([]byte(bare("+80")), "p.yaml")
	require.EqualError(t, err, "p.yaml:1: proportional.metrics[0].source.port: +80: must be the number of a port")
	for _, text := range []string{"1", "80", "9999", "10000", "65535", `"65535"`} {
		p := one(t, manifest(text))
		var port policy.PortNumber
		require.NoError(t, json.Unmarshal([]byte(text), &port))
		require.Equal(t, port, *p.Scaler.Proportional.Metrics[0].Source.Port)
	}
	for _, text := range []string{"0", "-1", "65536", `"70000"`} {
		_, err := policy.Read([]byte(manifest(text)), "p.yaml")
		require.ErrorContains(t, err, "must be between 1 and 65535")
	}
}

// TestRegressionPortOfAVariantAsWritten: "0080" was port 80, which the same number elsewhere in a document is not.
func TestRegressionPortOfAVariantAsWritten(t *testing.T) {
	for text, right := range map[string]bool{"80": true, "65535": true, "http": true, "0080": false, "00": false, "65536": false, "-1": false} {
		_, err := policy.ReadModels([]byte(`models: [{name: a, namespace: b, algorithm: saturation, variants: [{target: {apiVersion: apps/v1, kind: Deployment, name: c}, cost: 1, min: 1, max: 2, port: "`+text+`"}]}]`), "v.yaml")
		if right {
			require.NoError(t, err, text)
		} else {
			require.ErrorContains(t, err, "models[0].variants[0].port: "+text+": must be a number from 1 to 65535 or the name of a container's port")
		}
	}
}
