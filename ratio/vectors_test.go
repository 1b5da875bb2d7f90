package ratio_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/vectors"
	"github.com/inferscale/inferscale/ratio"
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
		if !file.Section(t, "roleRatio", &s) {
			continue
		}
		var c vectors.Tally
		for _, r := range s.Cases {
			var wantP, wantD int32
			require.NoError(t, json.Unmarshal(r.Want[0], &wantP), r.Name)
			require.NoError(t, json.Unmarshal(r.Want[1], &wantD), r.Name)
			config := ratio.Config{
				Prefill: scaling.Bounds{Min: r.NumBounds[0], Max: r.NumBounds[1]},
				Decode:  scaling.Bounds{Min: r.DenBounds[0], Max: r.DenBounds[1]},
				Min:     quantity(t, r.MinRatio), Max: quantity(t, r.MaxRatio),
			}
			projection, err := ratio.New(config)
			if err != nil {
				// Only a range without any pair may be refused: brute force must find none either.
				require.False(t, anyPair(config), "%s: %v", r.Name, err)
				c.List("%s: no pair above 0 is in range within the bounds: %v", r.Name, err)
				continue
			}
			p, d := projection.Project(r.Num, r.Den)
			mostP, mostD := projection.Project(r.NumBounds[1], r.DenBounds[1])
			require.True(t, inRange(config, p, d), "%s: %d/%d is not in range", r.Name, p, d)
			switch {
			case p == wantP && d == wantD:
				c.Met++
			case config.Min.IsZero() && config.Max.IsZero() && (wantP == 0) != (wantD == 0):
				c.List("%s: without a range Kthena keeps %d/%d; one role alone serves nothing", r.Name, wantP, wantD)
			case !inRange(config, wantP, wantD):
				c.List("%s: Kthena's %d/%d is out of range or bounds; ours is %d/%d", r.Name, wantP, wantD, p, d)
			case p >= min(r.Num, mostP) && d >= min(r.Den, mostD) && p <= wantP && d <= wantD:
				c.List("%s: Kthena's %d/%d is in range; ours, %d/%d, covers as much of both demands as any pair and is lower", r.Name, wantP, wantD, p, d)
			case wantP < min(r.Num, p) || wantD < min(r.Den, d):
				c.List("%s: Kthena's %d/%d is in range; ours, %d/%d, covers more of the demand", r.Name, wantP, wantD, p, d)
			default:
				t.Errorf("%s: %s: got %d/%d, want %d/%d", file.Name, r.Name, p, d, wantP, wantD)
			}
		}
		rows += c.Rows()
		c.Report(t, file.Name, "roleRatio")
	}
	vectors.Covered(t, rows)
}

// quantity reads a limit of a ratio: a string, a number or null; Kubernetes writes thousandths with an m.
func quantity(t *testing.T, raw *json.RawMessage) ratio.Fraction {
	t.Helper()
	if raw == nil || string(*raw) == "null" {
		return ratio.Fraction{}
	}
	text := strings.Trim(string(*raw), `"`)
	milli, isMilli := strings.CutSuffix(text, "m")
	f, err := ratio.ParseFraction(milli)
	require.NoError(t, err)
	if isMilli {
		f.Den *= 1000
	}
	return f
}

// anyPair finds a pair above 0 within bounds and range by looking at all of them.
func anyPair(c ratio.Config) bool {
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
func inRange(c ratio.Config, p, d int32) bool {
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
