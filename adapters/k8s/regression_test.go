package k8s_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/adapters/k8s"
	"github.com/inferscale/inferscale/adapters/k8s/k8stest"
)

// TestRegressionAWrongSelectorIsQuotedInPart: a custom resource with a wrong selector of 16 kB wrote 64 kB into the log, in each round.
func TestRegressionAWrongSelectorIsQuotedInPart(t *testing.T) {
	target := k8s.Target{APIVersion: "example.com/v1", Kind: "Model", Namespace: "models", Name: "chat"}
	c := k8stest.New(3, target)
	for _, selector := range []string{"a=b,=" + strings.Repeat("\x01", 16_000), "a in (" + strings.Repeat("é", 8_000) + ")"} {
		c.Targets["chat"].Status.Selector = selector
		_, err := c.Scales().Get(t.Context(), target)
		require.ErrorContains(t, err, "status.selector ")
		require.Less(t, len(err.Error()), 2_000)
	}
}
