package keda

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/inferscale/inferscale/scaling"
)

// faults takes joined errors apart.
func faults(err error) []error {
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, faults(e)...)
	}
	return all
}

// inOrder checks that each fault names one of the keys that were given, or one that should have been. Long names are cut,
// and so are long lists of faults.
func inOrder(t require.TestingT, metadata map[string]string, err error) {
	all := faults(err)
	if len(all) > mostFaults {
		require.Len(t, all, mostFaults+1)
		require.Regexp(t, `^and \d+ more$`, all[mostFaults].Error())
		all = all[:mostFaults]
	}
	for _, e := range all {
		var field *scaling.FieldError
		require.ErrorAs(t, e, &field, "%v", metadata)
		named := func(key string) bool {
			if field.Field == shortened(key) || strings.HasPrefix(key, field.Field+".") {
				return true // the whole key, or the part of it that is no field
			}
			if begins, ok := strings.CutSuffix(field.Field, "..."); ok && begins != "" && strings.HasPrefix(strings.ToValidUTF8(key, ""), begins) {
				return true // a last name that is cut
			}
			rest, ok := strings.CutPrefix(field.Field, strings.TrimSuffix(key, fromEnv))
			rest = strings.TrimPrefix(rest, fromEnv)
			return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		keys := append(slices.Collect(maps.Keys(metadata)), "scalerName", "threshold", "lowThreshold", "targetKind", "maxReplicas", "realtime.metrics", "proportional.metrics", "cron.policies", "cron.windows", "engine", "signal", "scaler", "metricName")
		if _, ok := metadata["proportional.stableWindowSeconds"]; ok {
			keys = append(keys, "proportional.panic.windowSeconds") // the profile's, which is to be shorter
		}
		require.True(t, slices.ContainsFunc(keys, named), "%q of %v", field.Field, metadata)
	}
}

// anyMetadata checks that what is accepted builds or says which key is wrong, and so does what is refused.
func anyMetadata(t require.TestingT, metadata map[string]string) {
	m, err := ParseMetadata(metadata)
	again, errAgain := ParseMetadata(maps.Clone(metadata))
	require.Equal(t, m, again)
	require.Equal(t, fmt.Sprint(err), fmt.Sprint(errAgain))
	if err != nil {
		inOrder(t, metadata, err)
		return
	}
	plan, err := m.plan(chatTarget, oneToTen)
	_, errAgain = again.plan(chatTarget, oneToTen)
	require.Equal(t, fmt.Sprint(err), fmt.Sprint(errAgain))
	if err != nil {
		inOrder(t, metadata, err)
		return
	}
	require.Equal(t, m.Interval, plan.Interval)
	if plan.Scrapes() {
		require.NoError(t, plan.Scrape.Validate())
	}
	_, err = specResponse(m.Spec())
	require.NoError(t, err)
}

// TestWhatIsNoNumberBreaksNoOtherRule: a stable window that is no number counted as 0, and the profile's panic window was
// refused too, as longer than that.
func TestWhatIsNoNumberBreaksNoOtherRule(t *testing.T) {
	for _, value := range []string{"", "x", "30s", "null"} {
		_, err := ParseMetadata(inReplicas("proportional.profile", "kpa", "proportional.stableWindowSeconds", value))
		require.ErrorContains(t, err, "proportional.stableWindowSeconds: ")
		require.NotContains(t, err.Error(), "panic")
	}
	_, err := ParseMetadata(inReplicas("proportional.profile", "kpa", "proportional.stableWindowSeconds", "5"))
	require.EqualError(t, err, "proportional.panic.windowSeconds: 6: must be at most stableWindow 5s")
	anyMetadata(t, inReplicas("proportional.profile", "kpa", "proportional.stableWindowSeconds", "5"))
}

// TestAnyMetadata draws from the keys that there are.
func TestAnyMetadata(t *testing.T) {
	keys := append(append(ownKeys(), sourceKeys()...), "realtime.scaleUpRule.scaleStep", "realtime.scaleUpRule", "realtime.profile", "realtime.metrics",
		"proportional.profile", "proportional.metrics", "proportional.stableWindowSeconds", "proportional.stabilization.downSeconds", "proportional.panic",
		"cron.windows", "cron.policies", "cron.mode", "cron.outside", "cron.nothing", "else")
	values := []string{
		"", "1", "0", "2", "-1", "0.5", "15", "30s", "3600", "600000", "x", "a/b", "true", "http", "https", "metric", "replicas", "Value", "AverageValue", "realtime", "proportional",
		"kpa", "hpa", "kthena", "responsive", "VLLM", "TTFT", "Waiting", "Max", "LeaderWorkerSet", "apps/v1", "Deployment", "InWindow", "/m",
		"[]", "{}", "{scaleStep: 3}", "[{target: 2}]", "[{threshold: {high: 2, low: 1}}]", "{windowSeconds: 6, threshold: 2}",
		`[{name: a, schedule: "0 1 * * *", targetReplicas: 2}]`, `[{name: a, start: "0 1 * * *", end: "0 2 * * *", targetReplicas: 2}]`,
		"{proportional: {metrics: [{target: 2}]}}", "{realtime: {metrics: [{threshold: {high: 2, low: 3}}]}}", "---\n1\n---\n2",
	}
	rapid.Check(t, func(t *rapid.T) {
		metadata := rapid.SampledFrom([]map[string]string{{}, inMetric(), inReplicas(), inReplicas("lowThreshold", "1"), inReplicas("threshold", "-")}).Draw(t, "base")
		metadata = maps.Clone(metadata)
		for range rapid.IntRange(0, 5).Draw(t, "more") {
			key := rapid.SampledFrom(keys).Draw(t, "key") + rapid.SampledFrom([]string{"", "", "", fromEnv}).Draw(t, "from")
			metadata[key] = rapid.SampledFrom(values).Draw(t, "value")
		}
		anyMetadata(t, metadata)
	})
}

// FuzzMetadata reads pairs of key and value, separated by bytes of 0.
func FuzzMetadata(f *testing.F) {
	seed := func(metadata map[string]string) {
		var text []string
		for _, key := range slices.Sorted(maps.Keys(metadata)) {
			text = append(text, key, metadata[key])
		}
		f.Add(strings.Join(text, "\x00"))
	}
	seed(inMetric())
	seed(inReplicas("lowThreshold", "1", "realtime.scaleUpRule.cooldownSeconds", "60"))
	seed(inReplicas("threshold", "-", "cron.windows", `[{name: a, start: "0 1 * * *", end: "0 2 * * *", targetReplicas: 1}]`))
	seed(inReplicas("threshold", "-", "scaler", "{realtime: {metrics: [{threshold: {high: 2, low: 1}}]}}"))
	seed(inMetric("engine", "VLLM", "signal", "TTFT", "quantile", "0.9", "metricPort", "http"))
	seed(inMetric("metricPorotocol", "https", "tlsServerName", "x", "interval", "1", "scrapeTimeout", "0.999", "metricType", "Value"))
	seed(map[string]string{strings.Repeat("\xff\x80key", 200): "1", strings.Repeat("é", 100): "", "realtime." + strings.Repeat("x", 400): "1"})
	seed(inReplicas("realtime.scaleUpRule.cooldown"+strings.Repeat("m", 150)+"Seconds", "60")) // its last name is cut, and not the whole
	many := make(map[string]string)
	for i := range 3 * mostFaults {
		many[fmt.Sprintf("cron.unknown%d", i)] = "1"
	}
	seed(many)
	f.Fuzz(func(t *testing.T, text string) {
		parts := strings.Split(text, "\x00")
		metadata := make(map[string]string)
		for i := 0; i+1 < len(parts); i += 2 {
			metadata[parts[i]] = parts[i+1]
		}
		anyMetadata(t, metadata)
	})
}
