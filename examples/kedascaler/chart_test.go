package main

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// TestRegressionTheChartTakesMoreEgress: where the API server has another port than 443 and 6443, as with minikube and MicroK8s, or
// pods are asked at their node's address, the scaler reached nothing, and the chart had no place for a rule more.
func TestRegressionTheChartTakesMoreEgress(t *testing.T) {
	text, err := os.ReadFile("deploy/chart/values.yaml")
	require.NoError(t, err)
	var values struct{ NetworkPolicy map[string]any }
	require.NoError(t, yaml.Unmarshal(text, &values))
	require.Contains(t, values.NetworkPolicy, "egress")
	text, err = os.ReadFile("deploy/chart/templates/networkpolicy.yaml")
	require.NoError(t, err)
	require.Contains(t, string(text), "{{- with .Values.networkPolicy.egress }}")
}
