package hetero_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/hetero"
	"github.com/inferscale/inferscale/internal/vectors"
	"github.com/inferscale/inferscale/scaling"
)

// TestVectorsRatio looks at Kthena's recorded projections of prefill and decode. Where its answer is the pair that the
// rule here demands the row is met. Where it is not, the row is listed, if the reason can be computed: its answer is
// out of range or bounds, or not the least pair; or ours is in range and the row's own constraint cannot be built.
func TestVectorsRatio(t *testing.T) {
	rows := 0
	for _, file := range vectors.Files(t) {
		var s struct {
			Cases []struct {
				Name      string             `json:"name"`
				Num       int32              `json:"num"`
				Den       int32              `json:"den"`
				NumBounds [2]int32           `json:"numBounds"`
				DenBounds [2]int32           `json:"denBounds"`
				MinRatio  *json.RawMessage   `json:"minRatio"`
				MaxRatio  *json.RawMessage   `json:"maxRatio"`
				Want      [4]json.RawMessage `json:"want"`
			} `json:"cases"`
		}
		if !section(t, file, "roleRatio", &s) {
			continue
		}
		var c tally
		for _, r := range s.Cases {
			var wantP, wantD int32
			require.NoError(t, json.Unmarshal(r.Want[0], &wantP), r.Name)
			require.NoError(t, json.Unmarshal(r.Want[1], &wantD), r.Name)
			config := hetero.RatioConfig{
				Prefill: scaling.Bounds{Min: r.NumBounds[0], Max: r.NumBounds[1]},
				Decode:  scaling.Bounds{Min: r.DenBounds[0], Max: r.DenBounds[1]},
				Min:     quantity(t, r.MinRatio), Max: quantity(t, r.MaxRatio),
			}
			ratio, err := hetero.NewRatio(config)
			if err != nil {
				// Only a range without any pair may be refused: brute force must find none either.
				require.False(t, anyPair(config), "%s: %v", r.Name, err)
				c.list("%s: no pair above 0 is in range within the bounds: %v", r.Name, err)
				continue
			}
			p, d := ratio.Project(r.Num, r.Den)
			require.True(t, inRange(config, p, d), "%s: %d/%d is not in range", r.Name, p, d)
			switch {
			case p == wantP && d == wantD:
				c.met++
			case config.Min.IsZero() && config.Max.IsZero() && (wantP == 0) != (wantD == 0):
				c.list("%s: without a range Kthena keeps %d/%d; one role alone serves nothing", r.Name, wantP, wantD)
			case !inRange(config, wantP, wantD):
				c.list("%s: Kthena's %d/%d is out of range or bounds; ours is %d/%d", r.Name, wantP, wantD, p, d)
			case p >= min(r.Num, r.NumBounds[1]) && d >= min(r.Den, r.DenBounds[1]) && p <= wantP && d <= wantD:
				c.list("%s: Kthena's %d/%d is in range; ours, %d/%d, covers both demands and is lower", r.Name, wantP, wantD, p, d)
			case wantP < min(r.Num, p) || wantD < min(r.Den, d):
				c.list("%s: Kthena's %d/%d is in range; ours, %d/%d, covers more of the demand", r.Name, wantP, wantD, p, d)
			default:
				t.Errorf("%s: %s: got %d/%d, want %d/%d", file.Name, r.Name, p, d, wantP, wantD)
			}
		}
		rows += c.met + c.listed
		c.report(t, file.Name, "roleRatio")
	}
	vectors.Covered(t, rows)
}

// quantity reads a limit of a ratio: a string, a number or null; Kubernetes writes thousandths with an m.
func quantity(t *testing.T, raw *json.RawMessage) hetero.Fraction {
	t.Helper()
	if raw == nil || string(*raw) == "null" {
		return hetero.Fraction{}
	}
	text := strings.Trim(string(*raw), `"`)
	milli, isMilli := strings.CutSuffix(text, "m")
	f, err := hetero.ParseFraction(milli)
	require.NoError(t, err)
	if isMilli {
		f.Den *= 1000
	}
	return f
}

// anyPair finds a pair above 0 within bounds and range by looking at all of them.
func anyPair(c hetero.RatioConfig) bool {
	for p := max(1, c.Prefill.Min); p <= c.Prefill.Max; p++ {
		for d := max(1, c.Decode.Min); d <= c.Decode.Max; d++ {
			if inRange(c, p, d) {
				return true
			}
		}
	}
	return false
}

// inRange restates what a feasible pair is.
func inRange(c hetero.RatioConfig, p, d int32) bool {
	if p < c.Prefill.Min || p > c.Prefill.Max || d < c.Decode.Min || d > c.Decode.Max {
		return false
	}
	if p == 0 || d == 0 {
		return p == 0 && d == 0
	}
	if !c.Min.IsZero() && int64(p)*c.Min.Den < c.Min.Num*int64(d) {
		return false
	}
	return c.Max.IsZero() || int64(p)*c.Max.Den <= c.Max.Num*int64(d)
}

// TestVectorsDefaults compares Kthena's recorded defaults and ranges where hetero has the same ones.
func TestVectorsDefaults(t *testing.T) {
	rows := 0
	for _, file := range vectors.Files(t) {
		var s struct {
			CRD struct {
				Rate *float64 `json:"costExpansionRatePercent"`
			} `json:"crd"`
			Ranges map[string]any `json:"ranges"`
		}
		if !section(t, file, "defaults", &s) {
			continue
		}
		var c tally
		if s.CRD.Rate != nil {
			require.InDelta(t, *s.CRD.Rate/100, hetero.Kthena().ExpansionRate, 0)
			c.met++
		}
		for name, value := range s.Ranges {
			switch name {
			case "costExpansionRatePercent":
				require.Equal(t, ">=0", value)
				require.NoError(t, hetero.Config{Types: []hetero.Type{{Name: "a", Cost: 1, Max: 1}}}.Validate())
				c.met++
			case "cost":
				c.list("cost %v: ours is above 0: a free type has no place in an order by cost", value)
			case "maxReplicas":
				require.Equal(t, []any{1.0, float64(hetero.MaxReplicas)}, value)
				c.met++
			case "minReplicas":
				require.Equal(t, []any{0.0, float64(hetero.MaxReplicas)}, value)
				c.met++
			default:
				c.skipped++ // of other packages
			}
		}
		rows += c.met + c.listed
		c.report(t, file.Name, "defaults")
	}
	vectors.Covered(t, rows)
}
