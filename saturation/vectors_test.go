package saturation_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/inferscale/inferscale/internal/vectors"
	"github.com/inferscale/inferscale/policy"
	"github.com/inferscale/inferscale/saturation"
	"github.com/inferscale/inferscale/scaling"
)

// The recorded answers are of the system that the seed describes. Mode Literal is held against its version 0.7.0.

// number is a float64 that may be written as a string, such as "NaN".
type number float64

func (n *number) UnmarshalJSON(data []byte) error {
	v, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	*n = number(v)
	return err
}

type vectorConfig map[string]json.RawMessage

var thresholdKeys = []string{"kvCacheThreshold", "queueLengthThreshold", "kvSpareTrigger", "queueSpareTrigger"}

// otherKeys are those of its other analyzers and versions.
var otherKeys = []string{
	"scaleUpThreshold", "scaleDownBoundary", "priority", "analyzers", "analyzerName", "enableLimiter", "limiters", "enableRescale", "scaleToZero", "cost",
}

// onlyThresholds reports whether a configuration has no other keys than the four that the seed has.
func (c vectorConfig) onlyThresholds() bool {
	for key := range c {
		if !slices.Contains(thresholdKeys, key) {
			return false
		}
	}
	return true
}

func (c vectorConfig) literal(t *testing.T) saturation.Config {
	t.Helper()
	for key := range c {
		require.Contains(t, append(slices.Clone(thresholdKeys), otherKeys...), key, "a key that the recorded system does not have")
	}
	get := func(key string) float64 {
		var n number
		if raw, ok := c[key]; ok {
			require.NoError(t, json.Unmarshal(raw, &n))
		}
		return float64(n)
	}
	return saturation.Config{Mode: saturation.Literal, Thresholds: saturation.Thresholds{
		KVCache: get(thresholdKeys[0]), QueueLength: get(thresholdKeys[1]),
		KVSpare: get(thresholdKeys[2]), QueueSpare: get(thresholdKeys[3]),
	}}
}

func (c vectorConfig) yaml() string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&b, "%s: %s\n", key, c[key])
	}
	return b.String()
}

type vectorReplica struct {
	Pod, Variant string
	KV, Queue    number
	Cost         number
}

type vectorState struct {
	Variant                   string
	Current, Desired, Pending int32
	Min, Max                  *int32
}

type vectorVariant struct {
	Variant                  string
	Cost                     number
	Metrics                  int
	ReplicaCount             int
	NonSaturated             int
	MaxKv, MaxQueue          number
	AvgSpareKv, AvgSpareQueu number
	AvgSpareQueue            number
	AvgKvUsage               *number `json:"avgKvUsage_v09"`
	Saturated                []string
}

type vectorAnalysis struct {
	Total, TotalReplicas, NonSaturated int
	AvgSpareKv, AvgSpareQueue          number
	ShouldScaleUp, ScaleDownSafe       bool
	Reason, ScaleUpReason              string
	Variants                           []vectorVariant
}

type vectorFlags struct{ ShouldScaleUp, ScaleDownSafe bool }

type vectorRow struct {
	Config   vectorConfig
	In       vectorConfig
	Replicas []vectorReplica
	States   []vectorState
	Variants []vectorVariant
	Analysis vectorAnalysis
	Expect   map[string]json.RawMessage
	Valid    bool

	ShouldScaleUp, ScaleDownSafe bool

	Versions, Version, Since string
	Observed                 map[string][]map[string]int32 `json:"targets_observed"`

	Targets       map[string]map[string]int32
	Deterministic *bool
	NearBoundary  bool
	Exact         *vectorFlags
}

const epoch = "v0_7_0"

// counts of the rows of one section.
type counts struct{ met, listed, skipped int }

// TestVectorsLiteralMode runs every row of the sections that are about this algorithm, in every file of the folder
// INFERSCALE_VECTORS. A row is met, or listed because it is about another version or analyzer by its own marks, or
// skipped because it is marked as depending on the order in which the recorded system went through a map.
func TestVectorsLiteralMode(t *testing.T) {
	total := 0
	for _, file := range vectors.Files(t) {
		sections := readVectors(t, file)
		for _, section := range slices.Sorted(maps.Keys(sections)) {
			check := vectorChecks[section]
			if check == nil {
				continue
			}
			var c counts
			for i, raw := range sections[section] {
				t.Run(fmt.Sprintf("%s/%s/%d", file.Name, section, i), func(t *testing.T) {
					var row vectorRow
					require.NoError(t, json.Unmarshal(raw, &row), string(raw))
					require.NoError(t, vectors.Has(raw, vectorFields[section]...))
					check(t, &row, &c)
				})
			}
			rows := len(sections[section])
			total += rows
			t.Logf("%s %s: %d rows: %d met, %d listed (another version or analyzer), %d skipped (order dependent)",
				file.Name, section, rows, c.met, c.listed, c.skipped)
			assert.Equal(t, rows, c.met+c.listed+c.skipped, "%s %s: a row is neither met nor covered by a rule", file.Name, section)
		}
	}
	t.Logf("%d rows", total)
	vectors.Covered(t, total)
}

// readVectors returns the rows of a file by section. The lines of a .jsonl are the section "lines"; lines without targets of this version
// are listed, and such as lack something else fail.
func readVectors(t *testing.T, file vectors.File) map[string][]json.RawMessage {
	t.Helper()
	sections := map[string][]json.RawMessage{}
	if file.IsLines() {
		own, foreign := 0, 0
		lines := bufio.NewScanner(bytes.NewReader(file.Data))
		lines.Buffer(nil, len(file.Data)+1)
		for lines.Scan() {
			var line struct {
				Replicas, States json.RawMessage
				Targets          map[string]json.RawMessage
			}
			raw := slices.Clone(lines.Bytes())
			switch {
			case json.Unmarshal(raw, &line) != nil || line.Replicas == nil && line.States == nil && line.Targets == nil:
				foreign++
				continue
			case line.States == nil || line.Targets == nil:
				assert.Fail(t, "a line lacks states or targets", "%s: %s", file.Name, raw)
			case line.Targets[epoch] == nil:
				t.Logf("%s: listed: a line has no targets of %s", file.Name, epoch)
			default:
				sections["lines"] = append(sections["lines"], raw)
			}
			own++
		}
		assert.False(t, own > 0 && foreign > 0, "%s: %d lines are of another schema than the others", file.Name, foreign)
		return sections
	}
	var all map[string]json.RawMessage
	if json.Unmarshal(file.Data, &all) != nil {
		return nil // a file of another shape
	}
	for name, raw := range all {
		var rows []json.RawMessage
		var section struct{ Cases []json.RawMessage }
		switch {
		case json.Unmarshal(raw, &rows) == nil:
			sections[name] = rows
		case json.Unmarshal(raw, &section) == nil && section.Cases != nil:
			sections[name] = section.Cases
		default:
			assert.Nil(t, vectorChecks[name], "%s: %s: must be a list", file.Name, name)
		}
	}
	return sections
}

var vectorChecks = map[string]func(t *testing.T, row *vectorRow, c *counts){
	"lines":           checkLine,
	"v1_analyze":      checkAnalyze,
	"v1_targets":      checkTargets,
	"v1_probe":        checkProbe,
	"config_validate": checkValidate,
	"config_defaults": checkDefaults,
}

// vectorFields are those without which a row of a section says nothing.
var vectorFields = map[string][]string{
	"lines":           {"config", "replicas", "states", "analysis", "targets"},
	"v1_analyze":      {"config", "replicas", "expect"},
	"v1_targets":      {"variants", "states", "expect"},
	"v1_probe":        {"config", "replicas", "states", "analysis", "targets_observed"},
	"config_validate": {"config", "valid"},
	"config_defaults": {"in", "expect"},
}

// versionMark is a version, or all from, to, above or below it, at the beginning of a mark: v0.7..v0.9 is a range.
var versionMark = regexp.MustCompile(`^(>=|<=|>|<)?v?0[._]([0-9]+)[^.]*(?:\.[0-9]+)?(?:\.\.v?0[._]([0-9]+))?`)

// isOther reports whether a row is marked as about versions that 0.7.0 is not among: ">=v0.8", "<=v0.6", "Aug" (0.9), "Feb" (0.5.1)
// where bounds act, which that version lacks. "after Feb" has 0.7.0 in it.
func (r *vectorRow) isOther() bool {
	const ours = 7
	for _, mark := range []string{r.Version, r.Versions, r.Since} {
		if strings.HasPrefix(mark, "Aug") || strings.HasPrefix(mark, "after Aug") || strings.HasPrefix(mark, "Feb") && slices.ContainsFunc(r.States, func(s vectorState) bool { return s.Min != nil || s.Max != nil }) {
			return true
		}
		m := versionMark.FindStringSubmatch(mark)
		if m == nil {
			continue
		}
		minor, _ := strconv.Atoi(m[2])
		first, last := minor, minor
		switch {
		case m[1] == ">=":
			last = math.MaxInt
		case m[1] == ">":
			first, last = minor+1, math.MaxInt
		case m[1] == "<=":
			first = 0
		case m[1] == "<":
			first, last = 0, minor-1
		case m[3] != "":
			last, _ = strconv.Atoi(m[3])
		case mark == r.Since:
			last = math.MaxInt
		}
		if ours < first || ours > last {
			return true
		}
	}
	return false
}

// replicas returns the rows in the shape of this package.
func (r *vectorRow) replicas() (replicas []saturation.Replica) {
	for _, x := range r.Replicas {
		replicas = append(replicas, saturation.Replica{Pod: x.Pod, Variant: x.Variant, KV: float64(x.KV), Queue: float64(x.Queue)})
	}
	return replicas
}

// variants returns the states in the shape of this package, with the cost of the variant's first replica, which is
// where the recorded system has it from.
func (r *vectorRow) variants() (variants []saturation.Variant) {
	for _, s := range r.States {
		v := saturation.Variant{Name: s.Variant, Current: s.Current, Pending: s.Pending}
		if s.Desired != 0 {
			v.Desired = saturation.CountOf(s.Desired)
		}
		if s.Min != nil {
			v.Min = *s.Min
		}
		if s.Max != nil {
			v.Max = *s.Max
		}
		for _, x := range slices.Backward(r.Replicas) {
			if x.Variant == s.Variant {
				v.Cost = float64(x.Cost)
			}
		}
		for _, x := range r.Variants {
			if x.Variant == s.Variant {
				v.Cost = float64(x.Cost)
			}
		}
		variants = append(variants, v)
	}
	return variants
}

// near compares what the recorded system computed in float64, in an order that varied from run to run.
func near(t *testing.T, want, got float64, what string) {
	t.Helper()
	if math.IsNaN(want) {
		require.True(t, math.IsNaN(got), "%s: %v", what, got)
		return
	}
	require.InDelta(t, want, got, 1e-9, what)
}

func saturatedPods(s saturation.Scaler, replicas []saturation.Replica, variant string) []string {
	pods := []string{}
	for _, r := range replicas {
		if (variant == "" || r.Variant == variant) && s.IsSaturated(r) {
			pods = append(pods, r.Pod)
		}
	}
	return pods
}

// requireTargets compares the targets of a plan with recorded ones. What the recorded system left out has to hold.
func requireTargets(t *testing.T, want map[string]int32, p *saturation.Plan) {
	t.Helper()
	for name, n := range want {
		target := p.Target(name)
		require.NotNil(t, target, "%s\n%s", name, p.Explain())
		require.Equal(t, n, target.Decision.Replicas, "%s\n%s", name, p.Explain())
	}
	for i := range p.Targets {
		target := &p.Targets[i]
		if _, ok := want[target.Variant]; !ok {
			require.Equal(t, saturation.LeftOut, target.Decision.Code(), p.Explain())
			require.Equal(t, scaling.Hold, target.Decision.Verdict, p.Explain())
		}
	}
}

func (r *vectorRow) decide(s saturation.Scaler, a *saturation.Analysis) *saturation.Plan {
	var plan saturation.Plan
	s.Decide(saturation.State{}, time.Time{}, a, r.variants(), &plan)
	return &plan
}

func checkLine(t *testing.T, row *vectorRow, c *counts) {
	t.Helper()
	if row.Deterministic != nil && !*row.Deterministic {
		c.skipped++
		return
	}
	s := saturation.Unchecked(row.Config.literal(t))
	replicas := row.replicas()
	var a saturation.Analysis
	s.Analyze(&a, replicas)
	want := vectorFlags{row.Analysis.ShouldScaleUp, row.Analysis.ScaleDownSafe}
	if row.NearBoundary {
		require.NotNil(t, row.Exact, "near a boundary the exact field decides")
		want = *row.Exact
	}
	require.Equal(t, want, vectorFlags{a.ScaleUp, a.DownSafe})
	if !row.NearBoundary {
		requireTrigger(t, row.Analysis.ScaleUpReason, s.Config().Thresholds, &a)
	}
	require.Equal(t, row.Analysis.TotalReplicas, a.Replicas)
	require.Equal(t, row.Analysis.NonSaturated, a.Free)
	near(t, float64(row.Analysis.AvgSpareKv), a.SpareKV, "avgSpareKv")
	near(t, float64(row.Analysis.AvgSpareQueue), a.SpareQueue, "avgSpareQueue")
	require.Len(t, a.Variants, len(row.Analysis.Variants))
	for _, w := range row.Analysis.Variants {
		i := slices.IndexFunc(a.Variants, func(v saturation.VariantAnalysis) bool { return v.Variant == w.Variant })
		require.GreaterOrEqual(t, i, 0, w.Variant)
		v := a.Variants[i]
		require.Equal(t, w.ReplicaCount, v.Replicas)
		require.Equal(t, w.NonSaturated, v.Free)
		near(t, max(float64(w.MaxKv), 0), v.MaxKV, "maxKv")
		near(t, max(float64(w.MaxQueue), 0), v.MaxQueue, "maxQueue")
		near(t, float64(w.AvgSpareKv), v.SpareKV, "avgSpareKv")
		near(t, float64(w.AvgSpareQueue), v.SpareQueue, "avgSpareQueue")
		if w.AvgKvUsage != nil {
			near(t, float64(*w.AvgKvUsage), v.AverageKV, "avgKvUsage")
		}
		require.ElementsMatch(t, w.Saturated, saturatedPods(s, replicas, w.Variant))
	}
	// The recorded targets are those of the recorded flags, which differ from the exact ones where float64 broke a tie.
	a.ScaleUp, a.DownSafe = row.Analysis.ShouldScaleUp, row.Analysis.ScaleDownSafe
	requireTargets(t, row.Targets[epoch], row.decide(s, &a))
	c.met++
}

// requireTrigger compares the triggers with those that the recorded reason names, save one that is a tie up to float
// noise: the other one has then decided.
func requireTrigger(t *testing.T, reason string, thresholds saturation.Thresholds, a *saturation.Analysis) {
	t.Helper()
	both := strings.HasPrefix(reason, "both")
	tie := func(spare, trigger float64) bool { return math.Abs(spare-trigger) <= 1e-9*max(1, math.Abs(trigger)) }
	if !tie(a.SpareKV, thresholds.KVSpare) {
		require.Equal(t, both || strings.HasPrefix(reason, "KV"), a.ShortKV, reason)
	}
	if !tie(a.SpareQueue, thresholds.QueueSpare) {
		require.Equal(t, both || strings.HasPrefix(reason, "queue"), a.ShortQueue, reason)
	}
}

func checkProbe(t *testing.T, row *vectorRow, c *counts) {
	t.Helper()
	switch len(row.Observed[epoch]) {
	case 0:
		c.listed++
		return
	case 1:
	default:
		c.skipped++
		return
	}
	s := saturation.Unchecked(row.Config.literal(t))
	var a saturation.Analysis
	s.Analyze(&a, row.replicas())
	require.Equal(t, row.Analysis.Total, a.Replicas)
	require.Equal(t, row.Analysis.NonSaturated, a.Free)
	near(t, float64(row.Analysis.AvgSpareKv), a.SpareKV, "avgSpareKv")
	near(t, float64(row.Analysis.AvgSpareQueue), a.SpareQueue, "avgSpareQueue")
	require.Equal(t, vectorFlags{row.Analysis.ShouldScaleUp, row.Analysis.ScaleDownSafe}, vectorFlags{a.ScaleUp, a.DownSafe})
	requireTrigger(t, row.Analysis.Reason, s.Config().Thresholds, &a)
	requireTargets(t, row.Observed[epoch][0], row.decide(s, &a))
	c.met++
}

// TestRegressionProbeOfOtherVersions: only targets that differed from run to run are order dependent, not ones that are missing.
func TestRegressionProbeOfOtherVersions(t *testing.T) {
	var c counts
	checkProbe(t, &vectorRow{Observed: map[string][]map[string]int32{"v0_9_0": {{"a": 1}}}}, &c)
	require.Equal(t, counts{listed: 1}, c)
	checkProbe(t, &vectorRow{Observed: map[string][]map[string]int32{epoch: {{"a": 1}, {"a": 2}}}}, &c)
	require.Equal(t, counts{listed: 1, skipped: 1}, c)
}

func checkTargets(t *testing.T, row *vectorRow, c *counts) {
	t.Helper()
	if row.isOther() {
		c.listed++
		return
	}
	a := saturation.Analysis{ScaleUp: row.ShouldScaleUp, DownSafe: row.ScaleDownSafe}
	for _, v := range row.Variants {
		a.Replicas += v.Metrics
		a.Variants = append(a.Variants, saturation.VariantAnalysis{Variant: v.Variant, Replicas: v.Metrics})
	}
	slices.SortFunc(a.Variants, func(x, y saturation.VariantAnalysis) int { return strings.Compare(x.Variant, y.Variant) })
	var want map[string]int32
	raw, err := json.Marshal(row.Expect)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &want))
	s := build(t, saturation.WVA())
	requireTargets(t, want, row.decide(s, &a))
	c.met++
}

func checkAnalyze(t *testing.T, row *vectorRow, c *counts) {
	t.Helper()
	if row.isOther() {
		c.listed++
		return
	}
	s := saturation.Unchecked(row.Config.literal(t))
	replicas := row.replicas()
	var a saturation.Analysis
	s.Analyze(&a, replicas)
	averageKV, maxKV := 0.0, 0.0
	perVariant := map[string]int{}
	for _, v := range a.Variants {
		averageKV += v.AverageKV * float64(v.Replicas) / float64(a.Replicas)
		maxKV = max(maxKV, v.MaxKV)
		perVariant[v.Variant] = v.Replicas
	}
	for field, raw := range row.Expect {
		is := func(got any) {
			data, err := json.Marshal(got)
			require.NoError(t, err)
			require.JSONEq(t, string(raw), string(data), field)
		}
		about := func(got float64) {
			var n number
			require.NoError(t, json.Unmarshal(raw, &n))
			near(t, float64(n), got, field)
		}
		switch strings.TrimSuffix(field, "~") {
		case "shouldScaleUp":
			is(a.ScaleUp)
		case "scaleDownSafe":
			is(a.DownSafe)
		case "totalReplicas":
			is(a.Replicas)
		case "nonSaturated":
			is(a.Free)
		case "variants":
			is(len(a.Variants))
		case "replicasPerVariant":
			is(perVariant)
		case "saturated":
			var pods []string
			require.NoError(t, json.Unmarshal(raw, &pods))
			require.ElementsMatch(t, pods, saturatedPods(s, replicas, ""))
		case "avgSpareKv":
			about(a.SpareKV)
		case "avgSpareQueue":
			about(a.SpareQueue)
		case "avgKvUsage":
			about(averageKV)
		case "maxKv":
			about(maxKV)
		default:
			require.Fail(t, "a field that no rule covers", field)
		}
	}
	c.met++
}

func checkValidate(t *testing.T, row *vectorRow, c *counts) {
	t.Helper()
	queue := func(key string) float64 {
		var n number
		_ = json.Unmarshal(row.Config[key], &n)
		return float64(n)
	}
	long := max(queue("queueLengthThreshold"), queue("queueSpareTrigger")) > 1e9 // which is refused here
	if row.isOther() || !row.Config.onlyThresholds() || long && row.Valid {
		c.listed++
		return
	}
	require.Equal(t, row.Valid, row.Config.literal(t).Validate() == nil)
	_, err := policy.ReadThresholds(map[string]string{policy.DefaultThresholds: row.Config.yaml()}, saturation.Literal)
	require.Equal(t, row.Valid, err == nil, "%v", err)
	c.met++
}

func checkDefaults(t *testing.T, row *vectorRow, c *counts) {
	t.Helper()
	if row.isOther() || !row.In.onlyThresholds() {
		c.listed++
		return
	}
	table, err := policy.ReadThresholds(map[string]string{policy.DefaultThresholds: row.In.yaml()}, saturation.Literal)
	require.NoError(t, err)
	got, _, err := table.Resolve("m", "n")
	require.NoError(t, err)
	data, err := json.Marshal(got)
	require.NoError(t, err)
	var have map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(data, &have))
	for field, raw := range row.Expect {
		var want, is number
		require.NoError(t, json.Unmarshal(raw, &want))
		if data, ok := have[field]; ok {
			require.NoError(t, json.Unmarshal(data, &is))
		}
		require.InDelta(t, float64(want), float64(is), 0, field) // a key of another analyzer counts as 0
	}
	c.met++
}
