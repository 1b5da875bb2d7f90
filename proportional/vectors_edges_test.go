package proportional_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVectorRowsNamed runs rows of other systems that no file here has, each of which must be listed under its rule.
func TestVectorRowsNamed(t *testing.T) {
	sequence := func(spec, rest string) string {
		return `{"spec": {"panic_threshold": 2, "max_up": 10, "stable_window_s": 60, ` + spec + `}, ` + rest + `}`
	}
	for name, row := range map[string]struct {
		run       func(json.RawMessage) (outcome, error)
		row, rule string
	}{
		"float noise makes a panic there": {knativeSequence, sequence(`"target": 0.7, "max_up": 1.1, "max_down": 10`, `"initial_ready": 1,
			"steps": [{"t": 0, "ready": 2, "stable": 2.1, "panic": 2.1, "want": {"desired": 3, "panic_started_t": 0}}]`), ruleNoise},
		"an activation without a load raises nothing": {knativeSequence, sequence(`"target": 10, "max_down": 2, "activation_scale": 5`,
			`"initial_ready": 1, "steps": [
			{"t": 0, "ready": 1, "stable": 0, "panic": 0, "want": {"desired": 0}},
			{"t": 70, "ready": 5, "stable": 0, "panic": 0, "want": {"desired": 2}}]`), ruleRateCrosses},
		"a panic after the clock went back": {knativeSequence, sequence(`"target": 10, "max_down": 2`, `"initial_ready": 1, "steps": [
			{"t": 10, "ready": 3, "stable": 60, "panic": 60, "want": {"desired": 6, "panic_started_t": 10}},
			{"t": 8, "ready": 3, "stable": 60, "panic": 60, "want": {"desired": 6, "panic_started_t": 8}}]`), ruleClockBack},
		"no metrics after the clock went back": {knativeSequence, sequence(`"target": 10, "max_down": 2`, `"initial_ready": 1, "steps": [
			{"t": 10, "ready": 1, "stable": 10, "panic": 10, "want": {"desired": 1}},
			{"t": 8, "ready": 1, "metrics_error": true, "want": {"desired": 0, "valid": false}}]`), ruleClockBack},
		"a panic of the future": {knativeSequence, sequence(`"target": 10, "max_down": 10`, `"initial_ready": 10, "steps": [
			{"t": -2, "ready": 10, "stable": 0, "panic": 0, "want": {"desired": 10, "panic_started_t": 0}}]`), ruleClockBack},
		"a negative value of a pod": {kthenaRecommendation, `{"min": 1, "max": 100, "current": 20, "tolerance": 0.5, "targets": {"a": 60},
			"ready": [[17, {"a": -60}], [3, {"a": 50}]], "external": {}, "want": [1, false]}`, ruleNegative},
		"a percentage of nothing":       {hpaFloatEdgeUp, `{"start": 0, "percent": 18, "got": 0, "exact": 0}`, rulePercentMoves},
		"a percentage of more than all": {hpaFloatEdgeDown, `{"start": 10, "percent": 150, "got": -5, "exact": -5}`, ruleBelowZero},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := row.run(json.RawMessage(row.row))
			require.NoError(t, err)
			require.Equal(t, outcome{row.rule}, got)
		})
	}
}

// TestRegressionVectorRowsUnknown runs rows that say what no other system knows: they must fail, not be taken for something else.
func TestRegressionVectorRowsUnknown(t *testing.T) {
	for name, row := range map[string]struct {
		run func(json.RawMessage) (outcome, error)
		row string
	}{
		"the type of a policy": {hpaRateLimits, `{"current": 10, "desired": 50, "min": 1, "max": 100, "down_rules": "default", "want": 20,
			"up_rules": {"policies": [{"type": "Nodes", "value": 100, "period_s": 60}], "select": "Max"}}`},
		"the type of a policy in short": {hpaRateLimitUnits, `{"direction": "up", "current": 10, "select": "Max", "policies": [["Nodes", 100, 60]],
			"want_limit": 20}`},
		"the direction": {hpaRateLimitUnits, `{"direction": "sideways", "current": 10, "select": "Max", "policies": [["Pods", 4, 60]],
			"want_limit": 6}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := row.run(json.RawMessage(row.row))
			require.Error(t, err)
		})
	}
}
