package saturation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
	"github.com/inferscale/inferscale/scalingtest"
)

func TestConfigValidate(t *testing.T) {
	require.NoError(t, saturation.Defaults().Validate())
	require.NoError(t, saturation.WVA().Validate())
	bad := map[string]saturation.Config{
		"all zero": {},
		"not numbers": {Thresholds: saturation.Thresholds{
			KVCache: math.NaN(), QueueLength: math.Inf(1), KVSpare: math.Inf(-1), QueueSpare: math.NaN(),
		}},
		"spare not below threshold": {Thresholds: saturation.Thresholds{KVCache: 0.8, QueueLength: 5, KVSpare: 0.8, QueueSpare: 6}},
		"negative and unknown": {
			Thresholds: saturation.Thresholds{KVCache: -1, QueueLength: -1, KVSpare: -1, QueueSpare: -1}, Mode: 7, Step: 7,
			TransitionTimeout: -1, DownStabilization: -1,
		},
		"literal with what is not the seed's": {
			Mode: saturation.Literal, Thresholds: saturation.Thresholds{KVCache: 1.5, QueueLength: -1, KVSpare: 1.6, QueueSpare: math.Inf(1)},
			TransitionTimeout: 1, DownStabilization: 1, Step: saturation.Deficit,
		},
	}
	var report strings.Builder
	for _, name := range []string{"all zero", "not numbers", "spare not below threshold", "negative and unknown", "literal with what is not the seed's"} {
		_, err := saturation.New(bad[name])
		require.Error(t, err)
		var field *scaling.FieldError
		require.ErrorAs(t, err, &field)
		fmt.Fprintf(&report, "%s\n%v\n\n", name, err)
	}
	wrong := saturation.Variant{Cost: math.NaN(), Capacity: -1, Min: -1, Max: -1, Current: -1, Pending: -1, Desired: saturation.CountOf(-1)}
	fmt.Fprintf(&report, "variant\n%v\n\n", wrong.Validate())
	_, err := saturation.NewSingle(saturation.SingleConfig{KV: "x", Queue: "x"})
	fmt.Fprintf(&report, "single\n%v\n", err)
	scalingtest.Golden(t, "errors.txt", report.String())
	assert.Equal(t, "Default Literal Mode(9) One Deficit StepRule(9)", fmt.Sprint(
		saturation.Default, " ", saturation.Literal, " ", saturation.Mode(9), " ", saturation.One, " ", saturation.Deficit, " ", saturation.StepRule(9)))
}

func TestModelState(t *testing.T) {
	m := modelOf(t, saturation.Defaults())
	variants := []saturation.Variant{{Name: "a", Cost: 1, Current: 3, Desired: saturation.CountOf(3)}}
	m.Decide(start, same("a", 2, 0.9, 9), variants)
	good, err := json.Marshal(m)
	require.NoError(t, err)
	require.JSONEq(t, `{"kind":"saturation","version":1,"state":{"seen":1768464000000,"rules":"11339c9b4c6c8275","fleet":3,
		"transitions":[{"variant":"a","current":3,"wish":3,"since":1768464000000}]}}`, string(good))

	for _, c := range []struct {
		stored, field string
		is            error
	}{
		{`{"kind":"saturation","version":2,"state":{}}`, "newer", scaling.ErrNewerState},
		{`{"kind":"realtime","version":1,"state":{}}`, "another kind", scaling.ErrOtherState},
		{`{"kind":"saturation","version":0,"state":{}}`, "version 0", nil},
		{`{"kind":"saturation","version":1}`, "no state", nil},
		{`{"kind":"saturation","version":1,"state":{"seen":1,"more":2}}`, "unknown field", nil},
		{`{"kind":"saturation","version":1,"state":{"rules":"xyz"}}`, "no fingerprint", nil},
		{`{"kind":"saturation","version":1,"state":{"transitions":[{"variant":"b","since":1},{"variant":"a","since":1}]}}`, "order", nil},
		{`{"kind":"saturation","version":1,"state":{"transitions":[{"variant":"b"}]}}`, "no time", nil},
		{`{`, "no JSON", nil},
	} {
		var refused *scaling.StateError
		err := m.UnmarshalJSON([]byte(c.stored))
		require.ErrorAs(t, err, &refused, c.field)
		require.True(t, c.is == nil || errors.Is(err, c.is), "%s: %v", c.field, err)
		p := m.Decide(start, same("a", 3, 0.9, 9), variants)
		require.Equal(t, scaling.Unknown, p.Model().Verdict)
		require.Equal(t, scaling.Unknown, p.Targets[0].Decision.Verdict)
		require.Equal(t, scaling.StateRefused, p.Targets[0].Decision.Code())
		m.Applied(start, 3, 4)
		kept, err := m.MarshalJSON()
		if json.Valid([]byte(c.stored)) {
			require.NoError(t, err)
			require.Equal(t, c.stored, string(kept), "what was refused is kept")
		} else {
			require.ErrorAs(t, err, &refused)
		}
	}
	require.NoError(t, json.Unmarshal(good, m))
	again, err := json.Marshal(m)
	require.NoError(t, err)
	require.Equal(t, string(good), string(again))

	var count saturation.Count
	for _, c := range []string{"null", "0", "7"} {
		require.NoError(t, json.Unmarshal([]byte(c), &count))
		data, err := json.Marshal(count)
		require.NoError(t, err)
		require.Equal(t, c, string(data))
	}
	require.Error(t, json.Unmarshal([]byte(`"x"`), &count))
}
