package controller_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRegressionATargetThatNoClientCanAskForIsRefused: a configuration with such a target was accepted. The model that had been
// there ended, the new one did not run, and only a line of the log said so.
func TestRegressionATargetThatNoClientCanAskForIsRefused(t *testing.T) {
	w := newWorld(t)
	w.configure(t, "1", saturated)
	watcher, events := story(t, w)
	eventually(t, "the good one is accepted", func() bool { return said(events, "Normal ConfigAccepted") })
	const kept = "Warning ConfigRefused the last good configuration stays in force: variants.yaml: models[0]: variants[0].target."
	for i, c := range []struct{ old, wrong, want string }{
		{"kind: Deployment", "kind: Deploy_ment", `kind: "Deploy_ment": must be at most 63 letters, digits and -`},
		{"apiVersion: apps/v1", "apiVersion: Apps/v1", `apiVersion: "Apps/v1": must be "version" or "group/version"`},
	} {
		require.Contains(t, saturated, c.old)
		w.configure(t, string(rune('2'+i)), strings.Replace(saturated, c.old, c.wrong, 1))
		eventually(t, c.wrong, func() bool { return said(events, kept+c.want) })
		inForce := watcher.Current()[0].Variants[0].Target
		require.Equal(t, "Deployment apps/v1", inForce.Kind+" "+inForce.APIVersion)
	}
	looks := w.looks("llama-a100")
	eventually(t, "its rounds go on", func() bool { return w.looks("llama-a100") > looks+1 })
}
